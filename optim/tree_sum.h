#pragma once
// A sum of n tensors in an order that depends on n alone. They are cut into equal ranges, as many
// as the smallest prime factor of n; each range is summed in the same way, and the sums are added
// in order. So one process can sum a range alone.

#include <vector>

#include "core/tensor.h"

namespace difftape {

/// Returns the number of ranges at each level of the tree, innermost first: the prime factors of
/// `leaves`, largest first.
std::vector<Index> tree_levels(Index leaves);

/// Returns true if equal ranges of the leaves are subtrees.
bool cuts_into_subtrees(Index leaves, Index ranges);

/// Adds tensors of one size in the order of the tree.
class TreeSum {
 public:
  explicit TreeSum(Index leaves) : levels_(tree_levels(leaves)), sums_(levels_.size()) {}

  /// Adds leaf `number`, whose value is x; leaves come in order from 0. After the last leaf x holds
  /// the sum; before, its contents are unspecified. Reuses one tensor per level for the next sum.
  void add(Index number, Tensor& x);
  /// Returns the number of tensors it keeps.
  Index kept() const { return std::ssize(sums_); }

 private:
  std::vector<Index> levels_;
  std::vector<Tensor> sums_;  // of complete ranges, one per level
};

}  // namespace difftape
