#pragma once
// Recognizes files of other programs by their contents.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace difftape::system {

enum class FileFormat : std::uint8_t {
  numpy,
  hdf5,
  compressed,  ///< zip (.npz, .pt), gzip, bzip2, xz or zstd
  lfs_pointer,
  html,
  json_lines,
  json,           ///< a single JSON value
  sentencepiece,  ///< a SentencePiece model
  other,          ///< a binary file that is of no use here
};

/// A recognized file.
struct FileKind {
  FileFormat format;
  const char* name;    ///< "a gzip file"
  const char* remedy;  ///< "unpack it with gunzip"
};

/// Recognizes the file `path` by its contents, JSON also by its extension in any letter case. A
/// head of 100 bytes is enough for all formats but JSON, whose first lines may have any length.
std::optional<FileKind> recognize(const std::filesystem::path& path, std::string_view contents);

/// Returns true for JSON lines and JSON values.
bool is_json(const FileKind& kind);

/// Returns the extension of a path in lower case, such as ".bin".
std::string lower_extension(const std::filesystem::path& path);

/// Throws DataError "PATH: is KIND, but must be NEED; REMEDY".
[[noreturn]] void refuse(const std::filesystem::path& path, const FileKind& kind,
                         std::string_view need);

/// Does so if the contents of a file are recognized as a format that no reader of difftape takes,
/// such as a Git LFS pointer. Call it before a reader says what is wrong with the contents.
void refuse_other(const std::filesystem::path& path, std::string_view contents,
                  std::string_view need);

}  // namespace difftape::system
