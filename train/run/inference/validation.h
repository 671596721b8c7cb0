#pragma once
// How good a model is at predicting batches: while it trains, and afterwards.

#include <string>
#include <utility>
#include <vector>

#include "layers/language_model.h"
#include "train/run/data/dataset.h"
#include "train/run/records/metrics.h"

namespace difftape::run {

/// What a validation reads, and how.
struct ValidationRequest {
  Index batches = 0;        ///< the first ones
  Index eos_token_id = -1;  ///< attention stays within the documents that it ends
  Precision precision = Precision::full;
  Tape::Events events{};   ///< see the tapes
  bool positions = false;  ///< measures loss_by_position too, which needs all logits of a batch
};

/// What it measures.
struct Validation {
  double loss = 0;  ///< nats per scored token, without z-loss
  /// Of a task TaskAccuracy::metrics, of several domains their losses.
  std::vector<std::pair<std::string, double>> metrics;
  Index tokens = 0;    ///< scored
  GroupLosses groups;  ///< of held-out text
  /// Nats per scored token at each place of a sequence, from 0; NaN where none is scored.
  std::vector<double> loss_by_position = {};
};

/// Means over the scored tokens of validation batches. batches >= 1. Processes that train together
/// share the batches and must all call it.
Validation validate(LanguageModel& model, const ValidationData& data,
                    const ValidationRequest& request);

/// How well each place of a sequence is predicted: what a model makes of more context, and of
/// positions beyond those of its training.
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

/// A validation, and what the text behind the tokens and the clock say of it.
struct Evaluation : Validation {
  double bits_per_byte = kNaN;  ///< NaN: the tokenizer is not known
  double tokens_per_sec = 0;
};

/// `tokenizer` made the tokens. Otherwise as validate().
Evaluation evaluate(LanguageModel& model, const ValidationData& data,
                    const ValidationRequest& request, const TokenizerFile& tokenizer);

}  // namespace difftape::run
