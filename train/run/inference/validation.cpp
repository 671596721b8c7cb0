#include "train/run/inference/validation.h"

#include <optional>

#include "train/run/data/task_accuracy.h"

namespace difftape::run {

namespace {

/// Cross-entropy of a batch, whose hits `score` counts if there is one.
double loss_of(LanguageModel& model, const Batch& batch, const ValidationRequest& request,
               TaskAccuracy* score) {
  const std::vector<std::int32_t> inputs = batch.inputs(), targets = batch.targets();
  const TokenBatch tokens{inputs, batch.batch, batch.seq,
                          batch.document_offsets(request.eos_token_id)};
  Tape tape(Tape::Mode::inference, request.precision);
  tape.set_hook(request.hook);
  LossTerms terms;
  if (score == nullptr) {
    model.loss(tape, tokens, targets, ActivationCheckpointing::none, &terms);
    return static_cast<double>(terms.cross_entropy);
  }
  const auto both = model.loss_and_logits(tape, tokens, targets);
  score->add(batch, both.logits.value());
  return static_cast<double>(both.terms.cross_entropy);
}

}  // namespace

Validation validate(LanguageModel& model, const Dataset& data, const ValidationRequest& request) {
  std::optional<TaskAccuracy> score;
  if (data.best()) score.emplace(data.grid());
  Validation result;
  double total = 0, weights = 0, first = 0;
  for (Index i = 0; i < request.batches; ++i) {
    const Batch batch = data.val_batch(i);
    result.tokens += batch.scored_targets();
    const auto targets = static_cast<double>(batch.scored_targets());
    if (i == 0) first = targets;
    const double weight = targets / first;  // 1 for batches of equal size: a plain mean
    total += weight * loss_of(model, batch, request, score ? &*score : nullptr);
    weights += weight;
  }
  result.loss = total / weights;
  if (score) result.metrics = score->metrics();
  return result;
}

}  // namespace difftape::run
