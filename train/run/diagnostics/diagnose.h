#pragma once
// Metrics of a model's attention and hidden states at one step of its training.

#include "layers/language_model.h"
#include "train/run/data/dataset.h"
#include "train/run/records/attention_maps.h"
#include "train/run/records/metrics.h"

namespace difftape::run {

struct Diagnostics {
  Metrics metrics;
  AttentionMaps maps;  ///< the caller sets the step
};

/// Returns the metrics of the hidden states (B, T, C) after a layer, by name without the layer.
Metrics activation_metrics(const Tensor& hidden);

/// Runs the model on the sequences in inference mode, in the precision of the training, and
/// measures every layer. Changes no state. Documents end at `eos_token_id`.
Diagnostics diagnose(LanguageModel& model, const Batch& batch, Index eos_token_id,
                     Precision precision);

/// Returns the first `sequences` validation sequences, or all if there are fewer, with their
/// retrieval queries but without the choice of scored targets.
Batch diagnostic_batch(const Dataset& data, Index sequences);

}  // namespace difftape::run
