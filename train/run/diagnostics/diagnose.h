#pragma once
// What happens inside a model at one moment of its training, as metrics.

#include "layers/language_model.h"
#include "train/run/data/dataset.h"
#include "train/run/records/metrics.h"

namespace difftape::run {

struct Diagnostics {
  Metrics metrics;
  Metrics distributions;  ///< all values, a list, that a metric of this name is the mean of
  AttentionMaps maps;     ///< the step is the caller's to set
};

/// Metrics of the hidden states (B, T, C) after a layer, by name, without the layer.
Metrics activation_metrics(const Tensor& hidden);

/// Runs the model on the sequences once more, in inference mode and in the precision of the
/// training, and measures every layer. Reads parameters, data and nothing else, and changes
/// nothing; documents end as data.eos_token_id says.
Diagnostics diagnose(LanguageModel& model, const Batch& batch, Index eos_token_id,
                     Precision precision);

/// The first `sequences` validation sequences, or all of them if there are fewer, with their
/// queries; what is scored, and how, is left out.
Batch diagnostic_batch(const Dataset& data, Index sequences);

}  // namespace difftape::run
