#pragma once
// Divides the documents of a corpus into training, validation and dropped documents.

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

/// Text of one document, or a part of a long one that ends with a line.
struct Piece {
  std::string_view text;
  bool ends_document = true;
  Index bytes_read = 0;         ///< bytes of all files up to the end of the piece
  Index file = 0;               ///< index of the file
  std::string_view group = {};  ///< documents of one group stay together; empty: none
};

/// A file after reading.
struct ReadFile {
  std::filesystem::path path;
  Index bytes = 0;
  std::string digest;  ///< XXH3 of the file
};

/// Calls `see` with all pieces in order. A file of JSON lines, recognized by its first two lines or
/// the extension .jsonl or .ndjson, has one object per line: the document is the string under
/// `key`, its group the string under "group", if any. Every other file is one document, also
/// other JSON in a folder. Throws MissingInput. Throws DataError with file and line or byte if a
/// file is not text, a line is not such an object, or, with `utf8`, a text file is not UTF-8.
std::vector<ReadFile> read_documents(std::span<const SourceFile> files, const std::string& key,
                                     bool utf8, const std::function<void(const Piece&)>& see);

/// Returns the position of the first byte that does not begin a UTF-8 character, or npos.
std::size_t first_foreign(std::string_view text);

/// Returns the total size of the files, bytes.
Index total_size(std::span<const SourceFile> files);

enum class Fate : std::uint8_t { trains, validates, dropped };

/// Fractions of bytes; a step without a value is skipped.
struct CorpusOptions {
  /// Drops documents that share more than this with others, see find_near_duplicates().
  std::optional<double> drop_duplicates = {};
  /// Holds out this fraction of every domain, see choose_held_out(). Documents of a group and equal
  /// documents stay together.
  std::optional<double> val_fraction = {};
  /// Drops held-out documents until at most this fraction of a domain's held-out bytes is shared
  /// with training, see choose_overlapping().
  std::optional<double> max_overlap = {};

  bool any() const { return drop_duplicates || val_fraction || max_overlap; }
};

/// Documents and bytes of a domain.
struct DomainCounts {
  std::string name;
  Index documents = 0, dropped = 0, held_out = 0;
  Index train_bytes = 0, val_bytes = 0, dropped_bytes = 0;
  Index shared_bytes = 0;  ///< the part of val_bytes in strings shared with training

  /// Returns the fraction of held-out bytes that also occur in training.
  double overlap() const {
    return val_bytes > 0 ? static_cast<double>(shared_bytes) / static_cast<double>(val_bytes) : 0;
  }
};

struct Corpus {
  std::vector<ReadFile> files;
  std::vector<Fate> fates;            ///< by document, in reading order
  std::vector<DomainCounts> domains;  ///< in the order of their first files
  std::vector<Index> domain_of;       ///< domain by file
};

/// Reads all documents into memory and assigns each a fate, which does not depend on a seed or on
/// the order of the files. `on_read` receives the number of bytes read. Throws UsageError for a
/// fraction out of range, and everything that read_documents throws. Throws DataError if all
/// documents of a domain are dropped, or if they are too few or too large for about val_fraction.
Corpus divide_documents(std::span<const SourceFile> files, const std::string& key, bool utf8,
                        const CorpusOptions& options, const std::function<void(Index)>& on_read);

}  // namespace difftape::run
