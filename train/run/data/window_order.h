#pragma once
// The orders in which windows of a row of tokens are read: shuffled for validation, epoch after
// epoch for training.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/random.h"
#include "train/run/data/dataset.h"

namespace difftape::run {

/// The seed of orders that are the same in every run.
inline constexpr std::uint64_t kAnySeed = 0;

/// Rule that cuts a span into windows of `window` tokens, which begin `stride` tokens apart.
struct WindowCut {
  Index window, stride;
  /// Tokens after the last whole window make a shorter one. Without, only a span without any whole
  /// window is a shorter one. A window has at least two tokens.
  bool tails = false;

  /// Returns the window of a span that begins at `begin`; a size below 2 means that there is none.
  Span at(const Span& span, Index begin) const {
    const Index end = std::min(begin + window, span.end);
    const bool counts = end - begin == window || tails || begin == span.begin;
    return {begin, counts ? end : begin};
  }
  /// Returns the number of windows of a span.
  Index count(const Span& span) const {
    const Index whole = span.size() < window ? 0 : 1 + (span.size() - window) / stride;
    return whole + (at(span, span.begin + whole * stride).size() >= 2 ? 1 : 0);
  }
};

/// The windows of ordered spans in a fixed shuffled order, so any prefix samples all spans. Memory
/// grows with the longest prefix that was read, not with the number of windows. Not to be shared by
/// threads.
class ShuffledWindows {
 public:
  ShuffledWindows(std::vector<Span> spans, WindowCut cut);

  /// Returns the number of windows.
  Index size() const { return size_; }
  /// Returns window `nth` of the order. It must exist.
  Span window(Index nth) const;

 private:
  std::vector<Index> prefix(Index length) const;

  std::vector<Span> spans_;
  WindowCut cut_;
  Index size_ = 0;
  mutable std::vector<Index> known_;  ///< first tokens of a prefix of the order
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
