#include "train/run/inference/origin_losses.h"

#include <numeric>

#include "core/processes.h"
#include "core/real.h"
#include "train/run/records/metric_registry.h"

namespace difftape::run {

OriginLosses::OriginLosses(const ValidationData& data, Index batches) : names_(data.domains()) {
  for (Index i = 0; i < batches; ++i) {
    const std::vector<RowOrigin> rows = data.val_origins(i);
    first_of_.push_back(origins_.size());
    origins_.insert(origins_.end(), rows.begin(), rows.end());
  }
  sequences_.resize(origins_.size());
}

void OriginLosses::add(Index i, const Batch& batch, std::span<const double> row_losses) {
  if (origins_.empty()) return;
  const auto seq = static_cast<size_t>(batch.seq);
  Sum* sum = &sequences_[first_of_[static_cast<size_t>(i)]];
  for (size_t at = 0; at < row_losses.size(); at += seq, ++sum) {
    const std::span<const double> row = row_losses.subspan(at, seq);
    sum->loss = std::accumulate(row.begin(), row.end(), 0.0);
    sum->tokens = batch.seq;
    if (batch.scored.empty()) continue;
    const auto scored = batch.scored.begin() + static_cast<std::ptrdiff_t>(at);
    sum->tokens = std::accumulate(scored, scored + batch.seq, Index{0});
  }
}

void OriginLosses::share() { processes::combine(sequences_); }

std::vector<OriginLosses::Sum> OriginLosses::sums(std::size_t parts,
                                                  Index RowOrigin::*part_of) const {
  std::vector<Sum> sums(parts);
  for (size_t i = 0; i < origins_.size(); ++i) {
    Sum& sum = sums[static_cast<size_t>(origins_[i].*part_of)];
    sum.loss += sequences_[i].loss;
    sum.tokens += sequences_[i].tokens;
  }
  return sums;
}

std::vector<std::pair<std::string, double>> OriginLosses::domains() const {
  std::vector<std::pair<std::string, double>> losses;
  if (names_.empty()) return losses;
  const std::vector<Sum> of = sums(names_.size(), &RowOrigin::domain);
  for (size_t i = 0; i < of.size(); ++i) {
    if (of[i].tokens == 0) continue;
    losses.emplace_back(metric_of(metric("val/loss"), names_[i]),
                        of[i].loss / static_cast<double>(of[i].tokens));
  }
  return losses;
}

GroupLosses OriginLosses::groups() const {
  GroupLosses groups;
  if (origins_.empty()) return groups;
  for (const Sum& sum : sums(kLossGroups, &RowOrigin::group)) {
    const auto tokens = static_cast<double>(sum.tokens);
    groups.loss.push_back(sum.tokens > 0 ? sum.loss / tokens : kNaN);
    groups.tokens.push_back(tokens);
  }
  return groups;
}

}  // namespace difftape::run
