#include "train/run/inference/validation.h"

#include <optional>

#include "core/processes.h"
#include "train/run/data/task_accuracy.h"
#include "train/run/inference/position_losses.h"

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

/// Cross-entropy of a batch, which is added to the sums.
double loss_of(LanguageModel& model, const Batch& batch, const ValidationRequest& request,
               Sums& sums) {
  const std::vector<std::int32_t> inputs = batch.inputs(), targets = batch.targets();
  const TokenBatch tokens{inputs, batch.batch, batch.seq,
                          batch.document_offsets(request.eos_token_id)};
  Tape tape(Tape::Mode::inference, request.precision);
  tape.set_hook(request.hook);
  LossTerms terms;
  if (!sums.need_logits()) {
    model.loss(tape, tokens, targets, ActivationCheckpointing::none, &terms);
    return static_cast<double>(terms.cross_entropy);
  }
  const auto both = model.loss_and_logits(tape, tokens, targets);
  sums.add(batch, both.logits.value());
  return static_cast<double>(both.terms.cross_entropy);
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
  for (Index i = begin; i < end; ++i) {
    losses[static_cast<size_t>(i)] = loss_of(model, data.val_batch(i), request, sums);
  }
  processes::combine(losses);
  if (sums.score) sums.score->share();
  double total = 0, weights = 0, first = 0;
  for (Index i = 0; i < request.batches; ++i) {
    const Batch batch = data.val_batch(i);
    result.tokens += batch.scored_targets();
    const auto targets = static_cast<double>(batch.scored_targets());
    if (i == 0) first = targets;
    const double weight = targets / first;  // 1 for batches of equal size: a plain mean
    total += weight * losses[static_cast<size_t>(i)];
    weights += weight;
  }
  result.loss = total / weights;
  if (sums.score) result.metrics = sums.score->metrics();
  if (sums.positions) result.loss_by_position = sums.positions->means();
  return result;
}

}  // namespace difftape::run
