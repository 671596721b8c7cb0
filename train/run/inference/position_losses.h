#pragma once
// How well each place of a sequence is predicted: what a model makes of more context, and of
// positions beyond those of its training.

#include <vector>

#include "core/tensor.h"
#include "train/run/data/dataset.h"

namespace difftape::run {

class PositionLosses {
 public:
  /// logits (B, T, V) of the batch.
  void add(const Batch& batch, const Tensor& logits);
  /// Mean cross-entropy at each place, nats per scored token; NaN where none is scored.
  std::vector<double> means() const;

 private:
  std::vector<double> sums_;
  std::vector<Index> counts_;
};

}  // namespace difftape::run
