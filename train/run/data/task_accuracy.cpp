#include "train/run/data/task_accuracy.h"

#include <fmt/format.h>

#include <algorithm>

#include "autograd/ops.h"
#include "core/processes.h"
#include "train/run/records/metric_registry.h"

namespace difftape::run {

namespace {

bool is_hit(const real* logits, Index vocab, std::int32_t target) {
  const real best = logits[target];
  for (Index v = 0; v < vocab; ++v) {
    if (v != target && !(logits[v] < best)) return false;
  }
  return true;
}

}  // namespace

TaskAccuracy::TaskAccuracy(const AccuracyGrid& grid)
    : grid_(grid), cells_(grid.rows.size() * grid.columns.size()) {}

TaskAccuracy::Share& TaskAccuracy::cell(Index row, Index column) {
  return cells_[static_cast<size_t>(row) * grid_.columns.size() + static_cast<size_t>(column)];
}

void TaskAccuracy::add(const Batch& batch, const Tensor& logits) {
  const std::vector<std::int32_t> targets = batch.targets();
  std::vector<bool> missed(targets.size());
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] == kIgnoreIndex) continue;
    const bool hit = is_hit(logits.row(static_cast<Index>(i)), logits.shape().last(), targets[i]);
    missed[i] = !hit;
    targets_.add(hit);
  }
  for (const AnswerSpan& answer : batch.answers) {
    const auto first = missed.begin() + answer.row * batch.seq;
    const bool all = std::find(first + answer.targets.begin, first + answer.targets.end, true) ==
                     first + answer.targets.end;
    answers_.add(all);
    cell(answer.grid_row, answer.grid_column).add(all);
  }
}

void TaskAccuracy::share() {
  std::vector<Share> mine = cells_;
  mine.insert(mine.end(), {targets_, answers_});
  std::vector<Share> sums(mine.size());
  const std::vector<Share> all = processes::all_of(std::span<const Share>(mine));
  for (size_t i = 0; i < all.size(); ++i) {
    sums[i % sums.size()].hits += all[i].hits;
    sums[i % sums.size()].total += all[i].total;
  }
  answers_ = sums.back();
  targets_ = sums[cells_.size()];
  std::copy_n(sums.begin(), cells_.size(), cells_.begin());
}

std::vector<std::pair<std::string, double>> TaskAccuracy::metrics() const {
  std::vector<std::pair<std::string, double>> metrics{{metric("val/accuracy"), targets_.value()}};
  if (grid_.exact_match) metrics.emplace_back(metric("task/exact_match"), answers_.value());
  for (size_t i = 0; i < cells_.size(); ++i) {
    if (cells_[i].total == 0) continue;
    const size_t columns = grid_.columns.size();
    metrics.emplace_back(fmt::format("{}/{}/{}", metric("task/accuracy"), grid_.rows[i / columns],
                                     grid_.columns[i % columns]),
                         cells_[i].value());
  }
  return metrics;
}

}  // namespace difftape::run
