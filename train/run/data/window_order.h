#pragma once
// The orders in which windows of a row of tokens are read: shuffled for validation, epoch after
// epoch for training.

#include <cstdint>
#include <vector>

#include "core/random.h"
#include "train/run/data/dataset.h"

namespace difftape::run {

/// The seed of orders that are the same in every run.
inline constexpr std::uint64_t kAnySeed = 0;

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
