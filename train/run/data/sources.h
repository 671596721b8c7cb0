#pragma once
// Which files data.path means, what they hold, and what is made of them: data.type text, whose
// tokens are their bytes, and data.type tokens, which other programs wrote.

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/run/data/dataset.h"
#include "train/run/data/windows.h"
#include "train/run/records/h5.h"
#include "train/system/stored_bytes.h"

namespace difftape::run {

class TokenSource;

/// The domain of a file is its name without the extension, or that of the directory if an entry, or
/// what its pattern matches, is one.
struct SourceFile {
  std::filesystem::path path;
  std::string domain;
};

/// The files that `entries` name, each once, in byte order of their paths whatever the order of the
/// entries. An entry is a file, a directory (every file below it; names that begin with a dot are
/// skipped), or a POSIX glob pattern of these, in which `~` is the home directory. Without entries:
/// the headers of Eigen, default_text().
/// Throws MissingInput for an entry that matches nothing, DataError for one that is not a file.
std::vector<SourceFile> find_source_files(std::span<const std::string> entries);

/// Tokens of data.type text: bytes.
inline constexpr Index kBytes = 256;
std::vector<std::int32_t> bytes_of(std::string_view text);
/// The text of tokens in [0, kBytes).
std::string text_of(std::span<const std::int32_t> bytes);

/// The path of one file, of more their number: "12 files".
std::string one_or_number(std::span<const SourceFile> files);

/// The directories whose files are the text of a run that names none: real C++, about 8.7 MB, on
/// every machine that built difftape. Throws MissingInput if they are gone.
std::vector<std::string> default_text();

/// The text of the files that `entries` of the key `key` name. Throws MissingInput, and DataError
/// if one of them is not text.
std::shared_ptr<const TokenSource> read_text(const char* key, std::span<const std::string> entries);

/// The tokens of such files, in the formats that token_data.cpp names, one file after the other.
/// Throws MissingInput, and DataError for a file that cannot be used and for a token that is not in
/// [0, vocab_size), with its place; ConfigError without entries.
std::shared_ptr<const TokenSource> read_token_files(const char* key,
                                                    std::span<const std::string> entries,
                                                    Index vocab_size);

/// The text of the files of data.path. Throws as read_text does, and DataError if all are too short
/// for one sequence of each part.
std::unique_ptr<Dataset> make_text(const DataConfig& config, std::uint64_t seed,
                                   Index micro_batches);

/// The tokens of the files of data.path. Throws as read_token_files does, and DataError for fewer
/// tokens than one sequence of each part.
std::unique_ptr<Dataset> make_token_data(const DataConfig& config, Index vocab_size,
                                         std::uint64_t seed, Index micro_batches);

/// A file of tokens as it stores them, little-endian and not signed.
struct TokenFile {
  std::filesystem::path path;
  std::string format;  ///< "nanoGPT .bin", for messages
  system::StoredBytes bytes;
  std::size_t offset = 0;  ///< of the first token
  std::size_t width = 1;   ///< bytes a token: 1, 2, 4 or 8
  Index size = 0;          ///< tokens
  TokenizerFile tokenizer = {};
  std::string domain = {};  ///< it is one of
  /// Of HDF5 that stores them in another way, in chunks for example, the open file: /tokens is read
  /// piece by piece, `bytes` is not.
  std::shared_ptr<const h5::File> pieces = nullptr;

  /// Tokens [begin, begin + into.size()); those that do not fit into 31 bits are negative.
  void read(Index begin, std::span<std::int32_t> into) const;
};

class StoredTokens : public TokenSource {
 public:
  /// Sees all tokens of a file, piece by piece, `first` being the number of the first of a piece.
  using Check = std::function<void(const TokenFile&, Index first, std::span<const std::int32_t>)>;

  /// Reads all files once, for the check and the digest.
  StoredTokens(std::vector<TokenFile> files, const Check& check);

  Index size() const override { return ends_.empty() ? 0 : ends_.back(); }
  void copy(Index begin, std::span<std::int32_t> into) const override;

 private:
  std::vector<TokenFile> files_;
  std::vector<Index> ends_;  ///< tokens up to and including each file
};

}  // namespace difftape::run
