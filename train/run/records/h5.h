#pragma once
// HDF5 files. Only h5.* includes the C API of HDF5. Files are built in memory and written to the
// disk in one piece; HDF5 itself never writes, because it cannot recover from a full disk.
//
// Objects are named by paths from the root, "model/norm.weight" or "/model/norm.weight". Every
// error names the file and the object. Writing throws OutputError, reading DataError.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace difftape::run::h5 {

template <class T>
concept Element = std::same_as<T, float> || std::same_as<T, double> ||
    std::same_as<T, std::uint8_t> || std::same_as<T, std::int32_t> || std::same_as<T, std::int64_t>;

/// Layout of a dataset in the file; `compressed` applies to datasets longer than one chunk.
enum class Storage { plain, compressed };

/// Returns the version of the HDF5 library in use, such as "1.10.8".
std::string library_version();

class File {
 public:
  /// Returns an empty file in memory, which save() writes to `path`. The caller may use the first
  /// `user_block` bytes (0, or a power of two from 512 on), which readers of HDF5 skip.
  static File create(const std::filesystem::path& path, std::size_t user_block = 0);
  /// Opens a file for reading. Throws MissingInput if it does not exist or is not readable,
  /// DataError if it is not an HDF5 file.
  static File open(const std::filesystem::path& path);

  File(File&&) noexcept;
  ~File();

  /// Writes `values`, row-major, as a new dataset and creates missing parent groups.
  template <Element T>
  void write(const std::string& dataset, const Shape& shape, std::span<const T> values,
             Storage storage = Storage::plain);
  void write(const std::string& dataset, const Tensor& tensor);
  /// Adds an attribute, a UTF-8 string or a 64-bit integer. Creates the object as a group if it
  /// does not exist yet.
  void set_attribute(const std::string& object, const std::string& name, const std::string& value);
  void set_attribute(const std::string& object, const std::string& name, std::int64_t value);

  /// Replaces the file at the path given to create() atomically. `finish` may fill in the user
  /// block of the finished bytes before they are written. Throws OutputError.
  void save(const std::function<void(std::span<std::byte>)>& finish = {});

  bool exists(const std::string& object) const;
  /// Returns the names of the direct children of a group, sorted.
  std::vector<std::string> children(const std::string& group) const;
  Shape shape(const std::string& dataset) const;
  /// Returns the elements in row-major order, converted from the type in the file.
  template <Element T>
  std::vector<T> read(const std::string& dataset) const {
    std::vector<T> values(shape(dataset).size());
    read<T>(dataset, values);
    return values;
  }
  /// Reads the elements into `into`, which must have the size of the dataset.
  template <Element T>
  void read(const std::string& dataset, std::span<T> into) const;
  /// Reads elements [begin, begin + into.size()) of a one-dimensional dataset of integers. Unsigned
  /// 64-bit values above the largest signed value become that value.
  void read_range(const std::string& dataset, Index begin, std::span<std::int64_t> into) const;
  /// Position in the file (bytes) of contiguous little-endian integers, and the bytes per integer.
  /// Absent if the dataset is chunked, compressed or in another byte order.
  struct Contiguous {
    std::size_t offset, width;
  };
  std::optional<Contiguous> contiguous(const std::string& dataset) const;
  std::string string_attribute(const std::string& object, const std::string& name) const;
  std::int64_t int_attribute(const std::string& object, const std::string& name) const;

 private:
  struct State;
  explicit File(std::unique_ptr<State> state);
  void set_attribute(const std::string& object, const std::string& name, std::int64_t type,
                     const void* value);

  std::unique_ptr<State> state_;
};

}  // namespace difftape::run::h5

namespace difftape::run {

/// The tokenizer of a token file or checkpoint, stored in it.
struct TokenizerFile {
  std::string name;   ///< "bytes", or the name of the SentencePiece file; empty: unknown
  std::string model;  ///< the contents of the SentencePiece file; empty for bytes

  bool is_known() const { return !name.empty(); }
  bool operator==(const TokenizerFile& other) const {
    return model == other.model && is_known() == other.is_known();
  }
};

/// Write and read the byte dataset <group>/tokenizer, with the name as an attribute. An unknown
/// tokenizer is not written, and a missing dataset reads as unknown.
void write_tokenizer(h5::File& file, const std::string& group, const TokenizerFile& tokenizer);
TokenizerFile read_tokenizer(const h5::File& file, const std::string& group);

}  // namespace difftape::run
