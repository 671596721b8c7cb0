#pragma once
// Cuts one long row of tokens into training and validation sequences, for text and token files. The
// split is a function of the tokens only.

#include <cstdint>
#include <memory>
#include <vector>

#include "train/run/data/window_order.h"

namespace difftape::run {

/// A file of a row of tokens.
struct SourcePart {
  std::string domain;
  Span span;
  std::string digest = {};  ///< XXH3 of its stored tokens
  std::string tokens = {};  ///< XXH3 of its tokens as 32-bit integers, the same for every format
};

/// A row of tokens with its metadata.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  virtual Index size() const = 0;
  /// Copies tokens [begin, begin + into.size()).
  virtual void copy(Index begin, std::span<std::int32_t> into) const = 0;

  std::string type;      ///< data.type
  std::string unit;      ///< name of the tokens, "bytes" or "tokens"
  std::string from;      ///< name in messages, "the text of a.txt"
  Index files = 0;       ///< number of files
  std::string digest;    ///< XXH3 of the stored tokens
  Index vocab_size = 0;  ///< tokens are in [0, vocab_size)
  TokenizerFile tokenizer;
  std::vector<SourcePart> parts;  ///< files in order; empty: one file of one domain
  Index text_bytes = 0;           ///< size of the text before tokenization, bytes; 0: unknown
  Index eos_token_id = -1;        ///< token that ends the documents of that text; -1: none
  std::string note;               ///< the files that were read and left out; may be empty
};

/// Makes a dataset of windows. Training sequences come in the order of Epochs; a step reads
/// `micro_batches` micro-batches, and the next continues after them. They may cross files.
/// Validation sequences do not overlap (held_out.h); they come from `val_source`, or from held-out
/// blocks of `source` if that is null. The dataset has the domains of `val_source` if there are 2
/// to kMostDomains. Throws DataError if the tokens are too few for one training sequence, for one
/// held-out block or for one validation target, or if the tokenizers differ.
std::unique_ptr<Dataset> make_windows(std::shared_ptr<const TokenSource> source,
                                      std::shared_ptr<const TokenSource> val_source,
                                      const DataConfig& config, std::uint64_t seed,
                                      Index micro_batches);
inline constexpr Index kMostDomains = 64;

/// Makes a dataset of the sources that `read(key, entries)` returns for data.path and
/// data.val_path.
template <class Read>
std::unique_ptr<Dataset> make_windows_of(const DataConfig& config, std::uint64_t seed,
                                         Index micro_batches, Read&& read) {
  const std::shared_ptr<const TokenSource> source = read("data.path", config.path);
  std::shared_ptr<const TokenSource> val_source;
  if (!config.val_path.empty()) {
    const bool same = config.val_path == config.path;
    val_source = same ? source : read("data.val_path", config.val_path);
  }
  return make_windows(source, val_source, config, seed, micro_batches);
}

/// Spans of training and validation tokens, in order; no window crosses their borders.
struct Split {
  std::vector<Span> train, val;
};

/// Cuts [0, size) into blocks of 16384 tokens, or of val_fraction * size if that is less, but never
/// less than `window`, and gives round(val_fraction * blocks) of them, at least one and not all, to
/// validation. Which ones depends on the number of blocks alone: all seeds share one validation
/// set. A shorter last block trains. Needs size >= 2 * window (std::logic_error).
Split split_by_blocks(Index size, Index window, double val_fraction);

/// Returns the windows of `window` tokens that begin at `starts`, one per row.
Batch windows_at(const TokenSource& source, std::span<const Index> starts, Index window);

/// Makes validation data in which every token except the first of each file is a target once. Each
/// sequence has up to `seq_len` inputs and begins with the last target of the previous one. Throws
/// DataError for fewer than two tokens.
std::unique_ptr<ValidationData> make_whole_row(std::shared_ptr<const TokenSource> source,
                                               Index seq_len, Index batch_size);

}  // namespace difftape::run
