#pragma once
// Files of HDF5 (its C API), which only h5.* includes. A file to write is built in memory and
// reaches the disk in one piece: HDF5 itself never writes, because it cannot recover from a full
// disk.
//
// Objects are named by paths from the root, "model/norm.weight" or "/model/norm.weight". Every
// error names file and object: OutputError while writing, DataError while reading.

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

/// How a dataset lies in the file; `compressed`: in chunks, if it is longer than one.
enum class Storage { plain, compressed };

/// Version of the HDF5 library in use, "1.10.8".
std::string library_version();

class File {
 public:
  /// An empty file in memory, which save() puts at `path`. The first `user_block` bytes (0, or a
  /// power of two from 512 on) are the caller's; readers of HDF5 skip them.
  static File create(const std::filesystem::path& path, std::size_t user_block = 0);
  /// A file to read. Throws MissingInput if it is not there or not readable, DataError if it is
  /// not HDF5.
  static File open(const std::filesystem::path& path);

  File(File&&) noexcept;
  ~File();

  /// A new dataset of `values`, row-major; groups on the way are made.
  template <Element T>
  void write(const std::string& dataset, const Shape& shape, std::span<const T> values,
             Storage storage = Storage::plain);
  void write(const std::string& dataset, const Tensor& tensor);
  /// A new attribute, of UTF-8 text or a 64-bit integer. The object is made, as a group, if it does
  /// not exist yet.
  void set_attribute(const std::string& object, const std::string& name, const std::string& value);
  void set_attribute(const std::string& object, const std::string& name, std::int64_t value);

  /// Replaces the file at the path given to create(), all or nothing. `finish` may fill in the user
  /// block of the finished bytes before they are written. Throws OutputError.
  void save(const std::function<void(std::span<std::byte>)>& finish = {});

  bool exists(const std::string& object) const;
  /// Names of what is directly in a group, sorted.
  std::vector<std::string> children(const std::string& group) const;
  Shape shape(const std::string& dataset) const;
  /// Elements in row-major order, converted from the type in the file.
  template <Element T>
  std::vector<T> read(const std::string& dataset) const {
    std::vector<T> values(shape(dataset).size());
    read<T>(dataset, values);
    return values;
  }
  /// The same into memory of the right size.
  template <Element T>
  void read(const std::string& dataset, std::span<T> into) const;
  /// Elements [begin, begin + into.size()) of a dataset of one axis. HDF5 makes the nearest number
  /// that fits of one that does not: unsigned ones of 64 bits above the largest signed.
  void read_range(const std::string& dataset, Index begin, std::span<std::int64_t> into) const;
  /// Where in the file integers lie one after the other, little-endian, of so many bytes each;
  /// nothing if they do not: in chunks, compressed, or of another order.
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

/// Names what made tokens of text; kept with files of tokens and checkpoints.
struct TokenizerFile {
  std::string name;   ///< "bytes", or that of the model's file; empty: not known
  std::string model;  ///< the model of SentencePiece, as its file has it; empty for bytes

  bool is_known() const { return !name.empty(); }
  bool operator==(const TokenizerFile& other) const {
    return model == other.model && is_known() == other.is_known();
  }
};

/// The dataset <group>/tokenizer of bytes, with its name as an attribute; nothing if not known.
void write_tokenizer(h5::File& file, const std::string& group, const TokenizerFile& tokenizer);
TokenizerFile read_tokenizer(const h5::File& file, const std::string& group);

}  // namespace difftape::run
