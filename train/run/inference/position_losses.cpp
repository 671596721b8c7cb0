#include "train/run/inference/position_losses.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "autograd/ops.h"
#include "core/parallel.h"
#include "core/real.h"

namespace difftape::run {

namespace {

double cross_entropy(std::span<const real> logits, std::int32_t target) {
  const double most = *std::ranges::max_element(logits);
  double sum = 0;
  for (const real logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  return most + std::log(sum) - static_cast<double>(logits[static_cast<size_t>(target)]);
}

}  // namespace

void PositionLosses::add(const Batch& batch, const Tensor& logits) {
  const std::vector<std::int32_t> targets = batch.targets();
  const auto vocab = static_cast<size_t>(logits.shape()[2]);
  const auto places = static_cast<size_t>(batch.seq);
  if (sums_.size() < places) {
    sums_.resize(places);
    counts_.resize(places);
  }
  parallel_for(batch.seq, [&](Index place) {
    const auto at = static_cast<size_t>(place);
    for (size_t row = at; row < targets.size(); row += places) {
      if (targets[row] == kIgnoreIndex) continue;
      sums_[at] += cross_entropy({logits.data() + row * vocab, vocab}, targets[row]);
      ++counts_[at];
    }
  });
}

std::vector<double> PositionLosses::means() const {
  std::vector<double> means;
  for (size_t at = 0; at < sums_.size(); ++at) {
    means.push_back(counts_[at] > 0 ? sums_[at] / static_cast<double>(counts_[at]) : kNaN);
  }
  return means;
}

}  // namespace difftape::run
