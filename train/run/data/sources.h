#pragma once
// Which files data.path means, what they hold, and what is made of them: data.type text, whose
// tokens are their bytes, and data.type tokens, which other programs wrote.

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/run/data/dataset.h"

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
/// Throws MissingInput for an entry that matches nothing, DataError for one that is no file.
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
/// if one of them is no text.
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

}  // namespace difftape::run
