#pragma once
// Which documents of a corpus train, which validate, and which are dropped.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
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
/// or byte, for what is not text, no such object, or, if `utf8` is asked for, no UTF-8.
std::vector<ReadFile> read_documents(std::span<const SourceFile> files, const std::string& key,
                                     bool utf8, const std::function<void(const Piece&)>& see);

/// The place of the first byte that begins no character of UTF-8; npos if there is none.
std::size_t first_foreign(std::string_view text);

/// Bytes of all files.
Index total_size(std::span<const SourceFile> files);

enum class Fate : std::uint8_t { trains, validates, dropped };

/// Fractions; what has none is not done.
struct CorpusOptions {
  /// Drops documents that share more of their bytes with others: find_near_duplicates().
  std::optional<double> drop_duplicates = {};
  /// Holds out so much of the bytes of every domain: choose_held_out(). Documents of a group, and
  /// equal ones, stay together.
  std::optional<double> val_fraction = {};
  /// Drops held-out documents until no more of the held-out bytes of a domain is shared with
  /// training: choose_overlapping().
  std::optional<double> max_overlap = {};

  bool any() const { return drop_duplicates || val_fraction || max_overlap; }
};

/// Documents and bytes of a domain.
struct DomainCounts {
  std::string name;
  Index documents = 0, dropped = 0, held_out = 0;
  Index train_bytes = 0, val_bytes = 0, dropped_bytes = 0;
  Index shared_bytes = 0;  ///< of val_bytes, within strings of kSharedBytes that training has too

  /// The fraction of held-out bytes that training has, too.
  double overlap() const {
    return val_bytes > 0 ? static_cast<double>(shared_bytes) / static_cast<double>(val_bytes) : 0;
  }
};

struct Corpus {
  std::vector<ReadFile> files;
  std::vector<Fate> fates;            ///< of the documents, in the order in which they are read
  std::vector<DomainCounts> domains;  ///< in the order of their first files
  std::vector<Index> domain_of;       ///< the domain of each file
};

/// Reads all documents into memory and decides about each. Neither a seed nor the order of the
/// files matters. `on_read` sees how many bytes are read. Throws UsageError for a fraction out of
/// range, what read_documents throws, and DataError for a domain all of whose documents are
/// dropped, or whose documents or groups are too few or too large for about val_fraction of it.
Corpus divide_documents(std::span<const SourceFile> files, const std::string& key, bool utf8,
                        const CorpusOptions& options, const std::function<void(Index)>& on_read);

}  // namespace difftape::run
