#pragma once
// The safetensors format: named tensors in one file.
//
//   8 bytes        N, little-endian
//   N bytes        JSON, padded with spaces: "__metadata__", strings by name, and for each tensor
//                  "<name>": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}
//   rest           the tensors, row-major, little-endian and contiguous; offsets count from here

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

/// Name of the type `real`: "F32" or "F64".
inline constexpr std::string_view kRealDtype = sizeof(real) == 8 ? "F64" : "F32";

struct NamedTensor {
  std::string name;
  Tensor value;
};

/// Returns the bytes of a file, with tensors sorted by name. Equal contents give equal bytes.
std::string to_bytes(const Metadata& metadata, std::vector<NamedTensor> tensors);

/// A tensor of a file.
struct Entry {
  std::string dtype;
  std::vector<Index> shape;
  std::string_view bytes;  ///< in the memory of the File

  /// Returns the shape as "(2, 3)".
  std::string shape_text() const;
};

/// A file that was read completely and validated.
class File {
 public:
  /// Reads a file. Throws MissingInput if it cannot be read. Throws DataError with the file and the
  /// problem if it is malformed: an invalid size, offset or type; a repeated name; overlapping
  /// tensors; a gap; missing or extra bytes.
  static File read(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const Metadata& metadata() const { return metadata_; }
  /// Returns the tensors by name.
  const std::map<std::string, Entry>& tensors() const { return tensors_; }

 private:
  friend class Reader;
  std::filesystem::path path_;
  std::shared_ptr<const std::string> bytes_;
  Metadata metadata_;
  std::map<std::string, Entry> tensors_;
};

/// Returns the reason why a type cannot be read exactly into `real`, with a remedy. Empty for F32,
/// F16 and BF16, and for F64 in double precision.
std::string why_not_read(std::string_view dtype);

/// Copies the elements of a tensor of a supported type exactly into `into`, which has its size.
void copy_numbers(const Entry& from, std::span<real> into);

}  // namespace difftape::run::safetensors
