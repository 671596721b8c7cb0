#pragma once
// Text files as documents, read piece by piece: a tokenizer need not hold them whole.

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/run/data/sources.h"

namespace difftape::run {

/// Text of one document, cut after a line where it is long.
struct Piece {
  std::string_view text;
  bool ends_document = true;
  Index bytes_read = 0;         ///< of all files, up to the end of it
  Index file = 0;               ///< its number
  std::string_view group = {};  ///< of documents that belong together; empty: none
};

/// A file that was read.
struct ReadFile {
  std::filesystem::path path;
  Index bytes = 0;
  std::string digest;  ///< XXH3 of it
};

/// Shows `see` all pieces in order. A file .jsonl or .ndjson has one document a line, the text that
/// its JSON object has under `key`, and its group, if it has a text under "group" that is not
/// empty; every other file is one document. Throws MissingInput, and DataError, with file and line
/// or byte, for what is no text, no such object, or, if `utf8` is asked for, no UTF-8.
std::vector<ReadFile> read_documents(std::span<const SourceFile> files,
                                     const std::string& key, bool utf8,
                                     const std::function<void(const Piece&)>& see);

/// The place of the first byte that begins no character of UTF-8; npos if there is none.
std::size_t first_foreign(std::string_view text);

/// Bytes of all files.
Index total_size(std::span<const SourceFile> files);

}  // namespace difftape::run
