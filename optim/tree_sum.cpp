#include "optim/tree_sum.h"

#include <algorithm>
#include <utility>

namespace difftape {

LeafSpan leaves_of(Index leaves, Index processes, Index process) {
  const Index each = leaves / processes, more = leaves % processes;
  const auto begin = [&](Index i) { return i * each + std::min(i, more); };
  return {begin(process), begin(process + 1)};
}

std::vector<LeafRange> aligned_ranges(const LeafSpan& leaves) {
  std::vector<LeafRange> ranges;
  for (Index begin = leaves.begin; begin < leaves.end;) {
    Index size = 1;
    while (begin % (2 * size) == 0 && begin + 2 * size <= leaves.end) size *= 2;
    ranges.push_back({begin, size});
    begin += size;
  }
  return ranges;
}

void TreeSum::add(LeafRange leaves, Tensor& x) {
  Tensor sum = std::move(x);
  while (!parts_.empty()) {
    Part& before = parts_.back();
    const bool are_halves =
        before.leaves.size == leaves.size && before.leaves.begin % (2 * leaves.size) == 0;
    if (!are_halves) break;
    sum.add(before.sum);
    leaves = {before.leaves.begin, 2 * leaves.size};
    spare_.push_back(std::move(before.sum));
    parts_.pop_back();
  }
  parts_.push_back({leaves, std::move(sum)});
  x = Tensor();
  if (spare_.empty()) return;
  x = std::move(spare_.back());
  spare_.pop_back();
}

void TreeSum::finish(Tensor& x) {
  Tensor& sum = parts_.back().sum;
  for (Index i = std::ssize(parts_) - 2; i >= 0; --i) sum.add(parts_[i].sum);
  restart(x);
}

void TreeSum::restart(Tensor& x) {
  std::swap(x, parts_.back().sum);
  for (Part& part : parts_) {
    if (part.sum.allocated()) spare_.push_back(std::move(part.sum));
  }
  parts_.clear();
}

}  // namespace difftape
