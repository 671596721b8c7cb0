#pragma once
// The safetensors format: tensors with names in one file.
//
//   8 bytes        N, little-endian
//   N bytes        JSON, padded with spaces: "__metadata__", texts by name, and for each tensor
//                  "<name>": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}
//   all that is left   the tensors, row-major and little-endian, one after the other; offsets count
//                  from its beginning

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace difftape::run::safetensors {

using Metadata = std::map<std::string, std::string>;

/// "F32" or "F64": what `real` is called here.
inline constexpr std::string_view kRealDtype = sizeof(real) == 8 ? "F64" : "F32";

struct NamedTensor {
  std::string name;
  Tensor value;
};

/// The bytes of a file: the tensors in the order of their names. Equal contents give equal bytes.
std::string to_bytes(const Metadata& metadata, std::vector<NamedTensor> tensors);

/// A tensor of a file.
struct Entry {
  std::string dtype;
  std::vector<Index> shape;
  std::string_view bytes;  ///< in the memory of its File

  /// "(2, 3)"
  std::string shape_text() const;
};

/// A file, read whole and found sound.
class File {
 public:
  /// Throws MissingInput if it cannot be read. Throws DataError, naming the file and what is wrong,
  /// if a size, an offset or a type is impossible, a name appears twice, tensors overlap or leave
  /// a hole, or bytes are missing or left over.
  static File read(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const Metadata& metadata() const { return metadata_; }
  /// By name.
  const std::map<std::string, Entry>& tensors() const { return tensors_; }

 private:
  friend class Reader;
  std::filesystem::path path_;
  std::shared_ptr<const std::string> bytes_;
  Metadata metadata_;
  std::map<std::string, Entry> tensors_;
};

/// Why `real` cannot hold every number of a type, and what can: empty for F32 and BF16, and for F64
/// in double precision.
std::string why_not_read(std::string_view dtype);

/// The numbers of a tensor whose type can be read, exactly. `into` has as many.
void copy_numbers(const Entry& from, std::span<real> into);

}  // namespace difftape::run::safetensors
