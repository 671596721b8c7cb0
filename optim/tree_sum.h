#pragma once
// A sum of tensors in an order that follows from how many they are alone: n of them are cut into
// equal ranges, as many as the smallest prime factor of n, whose sums, made in the same way, are
// added up from the first to the last. So whoever has one of the ranges can add it up alone.

#include <vector>

#include "core/tensor.h"

namespace difftape {

/// Into how many ranges each level of the tree cuts, the innermost first: the prime factors of
/// `leaves`, the largest first; none for one leaf.
std::vector<Index> tree_levels(Index leaves);

/// Whether each of so many equal ranges of the leaves is a subtree.
bool cuts_into_subtrees(Index leaves, Index ranges);

/// Adds up tensors of one size, one after another, in the order of the tree.
class TreeSum {
 public:
  explicit TreeSum(Index leaves) : levels_(tree_levels(leaves)), sums_(levels_.size()) {}

  /// Adds leaf `number`, which x holds; they come in order, from 0. After the last one x is the
  /// sum; before, its memory is that of another tensor, or none, to be overwritten. The memory that
  /// is kept, one tensor a level, serves the next sum.
  void add(Index number, Tensor& x);
  /// Tensors that it keeps.
  Index kept() const { return std::ssize(sums_); }

 private:
  std::vector<Index> levels_;
  std::vector<Tensor> sums_;  // of the ranges that are complete, a level each
};

}  // namespace difftape
