#include "train/run/inference/validation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "autograd/ops.h"
#include "core/parallel.h"
#include "core/processes.h"
#include "train/run/data/prepare/tokenizer.h"
#include "train/run/data/task_accuracy.h"
#include "train/run/inference/origin_losses.h"

namespace difftape::run {

namespace {

/// What is added up over batches besides their loss.
struct Sums {
  std::optional<TaskAccuracy> score;
  std::optional<PositionLosses> positions;

  bool need_logits() const { return score || positions; }
  void add(const Batch& batch, const Tensor& logits) {
    if (score) score->add(batch, logits);
    if (positions) positions->add(batch, logits);
  }
};

/// Terms of the loss of a batch, which is added to the sums.
LossTerms terms_of(LanguageModel& model, const Batch& batch, const ValidationRequest& request,
                   Sums& sums) {
  const std::vector<std::int32_t> inputs = batch.inputs(), targets = batch.targets();
  const TokenBatch tokens{inputs, batch.batch, batch.seq,
                          batch.document_offsets(request.eos_token_id)};
  Tape tape(Tape::Mode::inference, request.precision);
  tape.set_events(request.events);
  LossTerms terms;
  if (!sums.need_logits()) {
    model.loss(tape, tokens, targets, ActivationCheckpointing::none, &terms);
    return terms;
  }
  auto both = model.loss_and_logits(tape, tokens, targets);
  sums.add(batch, both.logits.value());
  return std::move(both.terms);
}

}  // namespace

Validation validate(LanguageModel& model, const ValidationData& data,
                    const ValidationRequest& request) {
  Sums sums;
  if (data.best()) sums.score.emplace(data.grid());
  if (request.positions) sums.positions.emplace();
  Validation result;
  const Index begin = request.batches * processes::rank() / processes::count();
  const Index end = request.batches * (processes::rank() + 1) / processes::count();
  std::vector<double> losses(static_cast<size_t>(request.batches));
  std::vector<Index> scored(losses.size());
  OriginLosses origins(data, request.batches);
  for (Index i = begin; i < end; ++i) {
    const Batch batch = data.val_batch(i);
    const LossTerms terms = terms_of(model, batch, request, sums);
    losses[static_cast<size_t>(i)] = static_cast<double>(terms.cross_entropy);
    scored[static_cast<size_t>(i)] = batch.scored_targets();
    origins.add(i, batch, terms.row_losses);
  }
  processes::combine(losses);
  processes::combine(scored);
  origins.share();
  if (sums.score) sums.score->share();
  double total = 0, weights = 0;
  for (size_t i = 0; i < losses.size(); ++i) {
    result.tokens += scored[i];
    // 1 for batches of equal size: a plain mean
    const double weight = static_cast<double>(scored[i]) / static_cast<double>(scored[0]);
    total += weight * losses[i];
    weights += weight;
  }
  result.loss = total / weights;
  result.metrics = sums.score ? sums.score->metrics() : origins.domains();
  result.groups = origins.groups();
  if (sums.positions) result.loss_by_position = sums.positions->means();
  return result;
}

namespace {

double cross_entropy(std::span<const real> logits, std::int32_t target) {
  const double most = *std::ranges::max_element(logits);
  double sum = 0;
  for (const real logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  return most + std::log(sum) - static_cast<double>(logits[static_cast<size_t>(target)]);
}

/// Bytes of the text that the scored targets of the first `batches` stand for.
Index scored_bytes(const ValidationData& data, const TokenizerFile& file, Index batches) {
  const Tokenizer tokenizer = tokenizer_of(file);
  Index bytes = 0;
  for (Index i = 0; i < batches; ++i) {
    for (const std::int32_t target : data.val_batch(i).targets()) bytes += tokenizer.bytes(target);
  }
  return bytes;
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

Evaluation evaluate(LanguageModel& model, const ValidationData& data,
                    const ValidationRequest& request, const TokenizerFile& tokenizer) {
  const auto begin = std::chrono::steady_clock::now();
  Evaluation found{validate(model, data, request)};
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const auto tokens = static_cast<double>(found.tokens);
  found.tokens_per_sec = tokens / seconds.count();
  if (!tokenizer.is_known()) return found;
  if (const Index bytes = scored_bytes(data, tokenizer, request.batches); bytes > 0)
    found.bits_per_byte = found.loss / std::log(2.0) * (tokens / static_cast<double>(bytes));
  return found;
}

}  // namespace difftape::run
