#include "train/run/inference/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <optional>

#include "autograd/ops.h"
#include "core/distributed.h"
#include "core/real.h"
#include "train/run/inference/scored_text.h"
#include "train/run/records/metric_registry.h"

namespace difftape::run {

HeldOutLosses::HeldOutLosses(const ValidationData& data, Index batches) : names_(data.domains()) {
  for (Index i = 0; i < batches; ++i) {
    const std::vector<Index> rows = data.val_domains(i);
    first_of_.push_back(domains_.size());
    domains_.insert(domains_.end(), rows.begin(), rows.end());
  }
  sequences_.resize(domains_.size());
}

void HeldOutLosses::add(Index i, const Batch& batch, std::span<const double> row_losses) {
  if (domains_.empty()) return;
  const auto seq = static_cast<size_t>(batch.seq);
  Sequence* sequence = &sequences_[first_of_[i]];
  for (size_t at = 0; at < row_losses.size(); at += seq, ++sequence) {
    const auto sum = [&](size_t begin, size_t end) {
      const std::span<const double> losses = row_losses.subspan(at + begin, end - begin);
      Sum found{std::accumulate(losses.begin(), losses.end(), 0.0), std::ssize(losses)};
      if (batch.scored.empty()) return found;
      const auto scored = std::span(batch.scored).subspan(at + begin, end - begin);
      found.tokens = std::accumulate(scored.begin(), scored.end(), Index{0});
      return found;
    };
    *sequence = {sum(0, seq), sum(seq / 4, seq / 2), sum(seq / 2, seq)};
  }
}

void HeldOutLosses::share() { distributed::combine(sequences_); }

std::vector<std::pair<std::string, double>> HeldOutLosses::metrics() const {
  std::vector<std::pair<std::string, double>> metrics;
  if (!names_.empty()) {
    std::vector<Sum> of(names_.size());
    for (size_t i = 0; i < domains_.size(); ++i) of[domains_[i]].add(sequences_[i].all);
    for (size_t i = 0; i < of.size(); ++i)
      if (of[i].tokens > 0)
        metrics.emplace_back(metric_of(metric("val/loss"), names_[i]), of[i].mean());
  }
  Sum near, far;
  for (const Sequence& sequence : sequences_) {
    near.add(sequence.near);
    far.add(sequence.far);
  }
  if (near.tokens > 0 && far.tokens > 0)
    metrics.emplace_back(metric("val/context_gain"), near.mean() - far.mean());
  return metrics;
}

namespace {

bool is_hit(const real* logits, Index vocab, std::int32_t target) {
  const real best = logits[target];
  for (Index v = 0; v < vocab; ++v)
    if (v != target && !(logits[v] < best)) return false;
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
  const std::vector<Share> all = distributed::all_of(std::span<const Share>(mine));
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

namespace {

/// Returns the loss terms of a batch and adds its hits to `score`, if given.
LossTerms terms_of(LanguageModel& model, const Batch& batch, const ValidationRequest& request,
                   std::optional<TaskAccuracy>& score) {
  const std::vector<std::int32_t> inputs = batch.inputs(), targets = batch.targets();
  const TokenBatch tokens{inputs, batch.batch, batch.seq,
                          batch.document_offsets(request.eos_token_id)};
  Tape tape(Tape::Mode::inference, request.precision);
  tape.set_events(request.events);
  LossTerms terms;
  if (score) {
    auto both = model.loss_and_logits(tape, tokens, targets);
    score->add(batch, both.logits.value());
    terms = std::move(both.terms);
  } else {
    model.loss(tape, tokens, targets, ActivationCheckpointing::none, &terms);
  }
  return terms;
}

}  // namespace

Validation validate(LanguageModel& model, const ValidationData& data,
                    const ValidationRequest& request) {
  std::optional<TaskAccuracy> score;
  if (data.best()) score.emplace(data.grid());
  PositionLosses positions;
  Validation result;
  const Index begin = request.batches * distributed::rank() / distributed::count();
  const Index end = request.batches * (distributed::rank() + 1) / distributed::count();
  std::vector<double> losses(request.batches);
  std::vector<Index> scored(losses.size());
  HeldOutLosses origins(data, request.batches);
  for (Index i = begin; i < end; ++i) {
    if (request.stopped && request.stopped()) throw ValidationStopped();
    const Batch batch = data.val_batch(i);
    const LossTerms terms = terms_of(model, batch, request, score);
    losses[i] = static_cast<double>(terms.cross_entropy);
    scored[i] = batch.scored_targets();
    origins.add(i, batch, terms.row_losses);
    if (request.positions) positions.add(batch, terms.row_losses);
  }
  distributed::combine(losses);
  distributed::combine(scored);
  origins.share();
  if (score) score->share();
  positions.share();
  double total = 0, weights = 0;
  for (size_t i = 0; i < losses.size(); ++i) {
    result.tokens += scored[i];
    // The weight is 1 for batches of equal size, which gives a plain mean.
    const double weight = static_cast<double>(scored[i]) / static_cast<double>(scored[0]);
    total += weight * losses[i];
    weights += weight;
  }
  result.loss = total / weights;
  result.metrics = score ? score->metrics() : origins.metrics();
  result.loss_by_position = positions.means();
  return result;
}

void PositionLosses::add(const Batch& batch, std::span<const double> row_losses) {
  const std::vector<std::int32_t> targets = batch.targets();
  const auto places = std::max(sums_.size(), static_cast<size_t>(batch.seq));
  sums_.resize(places);
  counts_.resize(places);
  for (size_t row = 0; row < targets.size(); ++row) {
    if (targets[row] == kIgnoreIndex) continue;
    const size_t at = row % static_cast<size_t>(batch.seq);
    sums_[at] += row_losses[row];
    ++counts_[at];
  }
}

void PositionLosses::share() {
  const auto places = static_cast<Index>(sums_.size());
  const std::size_t most = std::ranges::max(distributed::all_of(std::span(&places, 1)));
  sums_.resize(most);
  counts_.resize(most);
  const std::vector<double> sums = distributed::all_of(std::span<const double>(sums_));
  const std::vector<Index> counts = distributed::all_of(std::span<const Index>(counts_));
  std::ranges::fill(sums_, 0);
  std::ranges::fill(counts_, 0);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sums_[i % most] += sums[i];
    counts_[i % most] += counts[i];
  }
}

std::vector<double> PositionLosses::means() const {
  std::vector<double> means;
  for (size_t at = 0; at < sums_.size(); ++at)
    means.push_back(counts_[at] > 0 ? sums_[at] / static_cast<double>(counts_[at]) : kNaN);
  while (!means.empty() && counts_[means.size() - 1] == 0) means.pop_back();
  return means;
}

Evaluation evaluate(LanguageModel& model, const ValidationData& data,
                    const ValidationRequest& request) {
  const auto begin = std::chrono::steady_clock::now();
  Evaluation found{validate(model, data, request)};
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const auto tokens = static_cast<double>(found.tokens);
  found.tokens_per_sec = tokens / seconds.count();
  const auto [bytes, reason] = scored_text(data, request.batches);
  found.no_bits_per_byte = reason;
  if (bytes > 0)
    found.bits_per_byte = found.loss / std::log(2.0) * (tokens / static_cast<double>(bytes));
  return found;
}

}  // namespace difftape::run
