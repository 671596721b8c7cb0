#include "optim/tree_sum.h"

#include <algorithm>
#include <utility>

namespace difftape {

std::vector<Index> tree_levels(Index leaves) {
  std::vector<Index> levels;
  for (Index factor = 2; leaves > 1;) {
    if (factor * factor > leaves) factor = leaves;
    if (leaves % factor != 0) {
      ++factor;
      continue;
    }
    levels.insert(levels.begin(), factor);
    leaves /= factor;
  }
  return levels;
}

bool cuts_into_subtrees(Index leaves, Index ranges) {
  std::vector<Index> levels = tree_levels(leaves);
  while (ranges > 1 && !levels.empty() && ranges % levels.back() == 0) {
    ranges /= levels.back();
    levels.pop_back();
  }
  return ranges == 1;
}

void TreeSum::add(Index number, Tensor& x) {
  for (std::size_t level = 0; level < levels_.size(); ++level) {
    const Index at = number % levels_[level];
    if (at > 0) x.add(sums_[level]);
    if (at + 1 < levels_[level]) {
      std::swap(x, sums_[level]);
      return;
    }
    number /= levels_[level];
  }
}

}  // namespace difftape
