#pragma once
// The order in which a run trains on the windows of its text: without replacement.

#include <cstdint>
#include <vector>

#include "core/random.h"
#include "train/run/data/dataset.h"

namespace difftape::run {

/// Windows of `seq_len` + 1 tokens, epoch after epoch. Those of an epoch begin at offset + k
/// seq_len in each span, so that each shares one token with the next and no target comes twice; all
/// that fit come once, in random order, before the next epoch begins. What is left at the ends of a
/// span, less than a window each, comes in other epochs: their offsets are 0, ..., seq_len - 1 in
/// random order, and then again, so that within seq_len epochs a window begins at every place where
/// one fits exactly once.
///
/// Sequence number n of a run is a function of n, the spans, seq_len and the seed: a binary search
/// over the offsets finds its epoch and its place there, and the RandomPermutation of that epoch
/// its window. Memory is that of the spans and the offsets, however many windows there are.
class Epochs {
 public:
  /// Throws std::logic_error if no span has room for a window.
  Epochs(const std::vector<Span>& spans, Index seq_len, std::uint64_t seed);

  /// The first token of sequence number n >= 0 of a run.
  Index start(Index n) const;

  /// The number of windows of the largest epochs, in which they begin where the spans do.
  Index largest() const;

 private:
  /// A span by its windows, if they begin where it does.
  struct Row {
    Index begin;
    Index windows;  ///< at least 1
    Index rest;     ///< tokens behind them: with a larger offset there is one window less
  };
  Index windows_at(Index offset) const;
  Index offset_of(Index slot) const {
    return static_cast<Index>(offsets_(static_cast<std::uint64_t>(slot)));
  }

  Index seq_len_;
  std::vector<Row> rows_;            ///< by falling rest
  std::vector<Index> always_until_;  ///< windows but the last of the rows up to and including each
  RandomPermutation offsets_;
  std::vector<Index> until_;  ///< windows of the first seq_len epochs up to and including each
  RandomStream epochs_;
};

}  // namespace difftape::run
