#pragma once
// The accuracy of a model on a task.

#include <string>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "train/run/data/dataset.h"

namespace difftape::run {

/// Counts hits: a scored target whose logit is above all others; a tie is a miss.
class TaskAccuracy {
 public:
  explicit TaskAccuracy(const AccuracyGrid& grid);

  /// logits (B, T, V) of the batch.
  void add(const Batch& batch, const Tensor& logits);

  /// Counts what all processes that train together counted; all must call it.
  void share();

  /// val/accuracy, the share of scored targets that were hit; with a grid task/accuracy/ROW/COLUMN,
  /// the share of answers all of whose scored targets were, where there were any; with
  /// AccuracyGrid::exact_match also task/exact_match, that share of all answers.
  std::vector<std::pair<std::string, double>> metrics() const;

 private:
  struct Share {
    Index hits = 0, total = 0;
    void add(bool hit) {
      hits += hit ? 1 : 0;
      ++total;
    }
    double value() const { return static_cast<double>(hits) / static_cast<double>(total); }
  };
  Share& cell(Index row, Index column);

  AccuracyGrid grid_;
  Share targets_, answers_;
  std::vector<Share> cells_;  // (rows, columns)
};

}  // namespace difftape::run
