#pragma once
// Finds the files of data.path and reads their tokens. With data.type text, the tokens are the
// bytes of text files; with data.type tokens, other programs wrote the token files.

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "train/run/data/dataset.h"
#include "train/run/data/windows.h"
#include "train/run/records/h5.h"
#include "train/system/stored_bytes.h"

namespace difftape::run {

class TokenSource;

/// A file and its domain: the file or directory that an entry of data.path names or matches, named
/// by domain_names().
struct SourceFile {
  std::filesystem::path path;
  std::string domain;
  bool in_folder = false;  ///< an entry names or matches a folder above it, not the file itself
};

/// The files that entries name, and what their folders contain besides.
struct SourceFiles {
  std::vector<SourceFile> files;
  Index bytes = 0;                              ///< size of the files
  Index hidden = 0, sidecars = 0;               ///< files left out
  Index lines = 0;                              ///< JSON lines among `files` that are not read
  Index left_out_bytes = 0;                     ///< size of the files left out
  std::vector<std::filesystem::path> dangling;  ///< links in folders that lead nowhere

  /// Returns "3 of 4 files, 27,000 of 30,000 bytes; left out: 1 whose name begins with a dot".
  std::string note() const;
};

/// Returns the files that `entries` name, each once, in byte order of their paths. An entry is a
/// file, a directory, or a POSIX glob pattern of these, in which `~` is the home directory and a
/// component `**` is any number of directories. A directory means every file below it, also through
/// links, except names that begin with a dot. Files that `data prepare` writes next to its tokens,
/// such as c.bin.json, and its incomplete files count only if an entry names them. A file that
/// several entries contain belongs to the domain of the nearest. Without entries it uses the
/// headers of Eigen, default_text(). Throws MissingInput for an entry that matches no file or a
/// link that leads nowhere, and DataError if it is neither a file nor a directory.
SourceFiles find_source_files(std::span<const std::string> entries);

/// Vocabulary size of data.type text, whose tokens are bytes.
inline constexpr Index kBytes = 256;
/// Name of the tokenizer whose tokens are bytes.
inline constexpr const char* kByteTokenizer = "bytes";

/// Returns the error of a text file whose byte `zero` is 0. It names the conversion of UTF-16, in
/// which `text` begins with a byte order mark; for other files `remedy`.
DataError not_text(const std::filesystem::path& path, std::string_view text, Index zero,
                   const char* remedy);

/// Returns the path of a single file, or a count such as "12 files".
std::string one_or_number(std::span<const SourceFile> files);

/// Returns the directories of the default text: C++ code, about 8.7 MB, on every machine that built
/// difftape. Throws MissingInput if they are gone.
std::vector<std::string> default_text();

/// Returns the text of the files that `entries` of the key `key` name. Throws MissingInput, and
/// DataError if a file is not text.
std::shared_ptr<const TokenSource> read_text(const char* key, std::span<const std::string> entries);

/// Returns the tokens of token files, concatenated; token_data.cpp lists the formats. Throws
/// MissingInput, DataError for an unusable file or a token outside [0, vocab_size), and ConfigError
/// without entries.
std::shared_ptr<const TokenSource> read_token_files(const char* key,
                                                    std::span<const std::string> entries,
                                                    Index vocab_size);

/// Returns true if all files that `entries` name are text or JSON lines: neither token files by
/// their extension or magic number nor other recognized files.
bool are_text(std::span<const std::string> entries);

/// Returns the text of the files of data.path. Throws like read_text, and DataError if the text is
/// too short for one training and one validation sequence.
std::unique_ptr<Dataset> make_text(const DataConfig& config, std::uint64_t seed,
                                   Index micro_batches);

/// Returns the tokens of the files of data.path. Throws like read_token_files, and DataError if
/// they are too few for one training and one validation sequence.
std::unique_ptr<Dataset> make_token_data(const DataConfig& config, Index vocab_size,
                                         std::uint64_t seed, Index micro_batches);

/// A file of tokens in its stored form, little-endian.
struct TokenFile {
  std::filesystem::path path;
  std::string format;  ///< "nanoGPT .bin", for messages
  system::StoredBytes bytes;
  std::size_t offset = 0;  ///< offset of the first token, bytes
  std::size_t width = 1;   ///< bytes per token: 1, 2, 4 or 8
  bool is_signed = false;
  Index size = 0;  ///< number of tokens
  TokenizerFile tokenizer = {};
  Index text_bytes = 0;              ///< size of the text of the tokens, bytes; 0: unknown
  Index eos_token_id = -1;           ///< token that ends the documents of that text; -1: none
  std::string recorded_digest = {};  ///< XXH3 of the tokens that `data prepare` wrote; may be empty
  std::string domain = {};           ///< domain of the file
  /// Open HDF5 file if /tokens is stored in chunks. It is then read in pieces instead of from
  /// `bytes`.
  std::shared_ptr<const h5::File> pieces = nullptr;
};

/// A token source that reads token files on demand.
class StoredTokens : public TokenSource {
 public:
  /// Callback for each piece of a file; `first` is the index of its first token in the file.
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
