#include "train/run/loop/leaves.h"

#include <algorithm>

#include "optim/tree_sum.h"

namespace difftape::run {

bool needs_whole_micro_batches(const ModelConfig& model) {
  return model.moe.router_aux_loss_coef > 0 || model.moe.router_z_loss_coef > 0;
}

Index leaves_per_micro_batch(const Config& config, Index parameters) {
  if (needs_whole_micro_batches(config.model)) return 1;
  const DataConfig& data = config.data;
  const Index tokens = parameters > kLargeModel ? kLargeModelLeafTokens : 1;
  const Index most = std::max<Index>(1, data.batch_size / ceil_div(tokens, data.seq_len));
  return std::min(most, ceil_div(kLeavesPerStep, config.train.gradient_accumulation_steps));
}

Leaf leaf_of(const Batch& micro_batch, Index leaves, Index i) {
  const LeafSpan rows = leaves_of(micro_batch.batch, leaves, i);
  Leaf leaf{micro_batch.rows({rows.begin, rows.end})};
  const Index scored = leaf.batch.scored_targets(), all = micro_batch.scored_targets();
  leaf.weight = scored == 0 ? 0 : static_cast<double>(scored) / static_cast<double>(all);
  if (scored == 0) leaf.batch.scored.clear();
  return leaf;
}

}  // namespace difftape::run
