#pragma once
// Cuts one long row of tokens into training and validation sequences, for text and token files. The
// split is a function of the tokens only.

#include <cstdint>
#include <memory>
#include <vector>

#include "core/random.h"
#include "train/run/data/dataset.h"

namespace difftape::run {

/// Outcome of dividing text files into training, validation and dropped files.
struct Division {
  Index dropped_files = 0, dropped_bytes = 0;  ///< near-duplicates
  std::optional<double> val_overlap = {};      ///< fraction of held-out bytes also in training
};

/// A span of a row of tokens and its domain.
struct DomainSpan {
  std::string domain;
  Span span;
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
  std::vector<DomainSpan> domains;   ///< domains of all tokens, in order
  std::optional<Division> division;  ///< set if files were divided
};

/// Makes a dataset of windows. Training sequences come in the order of Epochs; a step reads
/// `micro_batches` micro-batches, and the next continues after them. Validation sequences do not
/// overlap; they come from `val_source`, or from a held-out part of `source` if that is null. The
/// dataset has the domains of `val_source` if there are 2 to kMostDomains. Throws DataError if the
/// tokens are too few for one sequence of each, or if the tokenizers differ.
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

/// Returns the entropy of a token given the previous one, in nats per token, from the frequencies
/// of pairs in the first kCountedTokens tokens of the spans.
double bigram_entropy(const TokenSource& source, const std::vector<Span>& spans);
inline constexpr Index kCountedTokens = Index{1} << 24;

/// Cuts [0, size) into blocks of 16384 tokens, or of val_fraction * size if that is less, but never
/// less than `window`, and gives round(val_fraction * blocks) of them, at least one and not all, to
/// validation. Which ones depends on the number of blocks alone: all seeds share one validation
/// set. A shorter last block trains. Needs size >= 2 * window (std::logic_error).
Split split_by_blocks(Index size, Index window, double val_fraction);

/// The windows of `window` tokens that fit into each span, `stride` tokens apart, in a fixed
/// shuffled order, so any prefix samples all spans. Memory grows with the longest prefix that was
/// read, not with the number of windows. Not to be shared by threads.
class ShuffledWindows {
 public:
  ShuffledWindows(std::vector<Span> spans, Index window, Index stride);

  /// Returns the number of windows.
  Index size() const { return size_; }
  /// Returns the first tokens of windows [first, first + count) of the order. They must exist.
  std::vector<Index> starts(Index first, Index count) const;

 private:
  std::vector<Index> prefix(Index length) const;

  std::vector<Span> spans_;
  Index window_, stride_;
  Index size_ = 0;
  mutable std::vector<Index> known_;  ///< a prefix of the order
};

/// Returns the windows of `window` tokens that begin at `starts`, one per row.
Batch windows_at(const TokenSource& source, std::span<const Index> starts, Index window);

/// Domain and group of every held-out token. The held-out tokens of each domain are concatenated
/// and cut into kLossGroups equal ranges; group g is the g-th range of every domain.
class HeldOut {
 public:
  /// `spans` are ordered and disjoint, and `domains` cover them. Without domains, all tokens are in
  /// one unnamed domain.
  HeldOut(const std::vector<Span>& spans, const std::vector<DomainSpan>& domains);

  /// Returns the names of the domains in order of appearance.
  const std::vector<std::string>& domains() const { return names_; }
  /// Returns the domain and group of a held-out token.
  RowOrigin origin(Index token) const;

 private:
  struct Piece {
    Span span;
    Index domain;
    Index before;  ///< number of earlier held-out tokens of its domain
  };
  Index domain_of(const std::string& name);
  void add(const Span& span, Index domain);

  std::vector<std::string> names_;
  std::vector<Piece> pieces_;
  std::vector<Index> sizes_;  ///< held-out tokens by domain
};

/// Makes validation data in which every token except the first is a target once. Each sequence has
/// `seq_len` inputs and begins with the last target of the previous one; batches are in the order
/// of ShuffledWindows. The remaining tokens, a shorter sequence, are the last batch. Throws
/// DataError for fewer than two tokens.
std::unique_ptr<ValidationData> make_whole_row(std::shared_ptr<const TokenSource> source,
                                               Index seq_len, Index batch_size);

/// Order of the training windows of `seq_len` + 1 tokens, epoch after epoch. The windows of an
/// epoch begin at offset + k seq_len in each span: neighbors share one token, and no target
/// repeats. All windows that fit come once, in random order, before the next epoch begins. Tokens
/// at the ends of a span that fit into no window are used in other epochs. The offsets are a random
/// permutation of 0, ..., seq_len - 1, repeated, so within seq_len epochs a window begins exactly
/// once at every position where one fits.
///
/// Sequence n of a run is a function of n, the spans, seq_len and the seed. A binary search over
/// the offsets finds its epoch and its index there; the RandomPermutation of the epoch finds its
/// window. Memory grows with the numbers of spans and offsets, not with the number of windows.
class Epochs {
 public:
  /// Throws std::logic_error if no span is long enough for a window.
  Epochs(const std::vector<Span>& spans, Index seq_len, std::uint64_t seed);

  /// Returns the first token of sequence n >= 0 of a run.
  Index start(Index n) const;

  /// Returns the largest number of windows of an epoch, which offset 0 gives.
  Index largest() const;

 private:
  /// A span cut into windows at offset 0.
  struct Row {
    Index begin;
    Index windows;  ///< at least 1
    Index rest;     ///< tokens after the last window; a larger offset removes one window
  };
  Index windows_at(Index offset) const;
  Index offset_of(Index slot) const {
    return static_cast<Index>(offsets_(static_cast<std::uint64_t>(slot)));
  }

  Index seq_len_;
  std::vector<Row> rows_;            ///< in descending order of rest
  std::vector<Index> always_until_;  ///< cumulative sum of windows - 1 over the rows
  RandomPermutation offsets_;
  std::vector<Index> until_;  ///< cumulative number of windows over the first seq_len epochs
  RandomStream epochs_;
};

}  // namespace difftape::run
