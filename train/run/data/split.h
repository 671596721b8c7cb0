#pragma once
// Which part of a sequence of tokens trains and which validates.

#include <vector>

#include "core/real.h"

namespace difftape::run {

/// Positions [begin, end).
struct Span {
  Index begin, end;
  Index size() const { return end - begin; }
  friend bool operator==(const Span&, const Span&) = default;
};

/// Stretches of consecutive tokens of one kind, in order; no window of training crosses into
/// validation or back.
struct Split {
  std::vector<Span> train, val;
};

/// Cuts [0, size) into blocks of 16384 tokens, or of val_fraction * size if that is less, but never
/// less than `window`, and gives round(val_fraction * blocks) of them, at least one and not all, to
/// validation. Which ones depends on the number of blocks alone: all seeds share one validation
/// set. A shorter last block trains. Needs size >= 2 * window (std::logic_error).
Split split_by_blocks(Index size, Index window, double val_fraction);

/// The windows of `window` tokens, one after the other, that fit into each of the spans: their
/// first positions, in an order that is shuffled once and for all, so that the first few
/// already come from everywhere.
std::vector<Index> shuffled_windows(const std::vector<Span>& spans, Index window);

}  // namespace difftape::run
