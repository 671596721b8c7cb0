#pragma once
// Metrics as a report reads them from metrics.jsonl: over the steps and over the layers.

#include <string>
#include <vector>

#include "train/run/records/metrics.h"
#include "train/stats/descriptive.h"
#include "train/stats/spikes.h"

namespace difftape::study {

using stats::Series;

/// A metric where it was logged, infinities included. No points if it never was.
Series logged(const run::MetricsTable& metrics, const std::string& name);
/// A metric where it is finite.
Series curve(const run::MetricsTable& metrics, const std::string& name);

/// A metric in all layers ("attn/entropy/0", "attn/entropy/1", ...) where it was logged, and the
/// values of the last step that logged any, without NaN.
std::vector<Series> layers_of(const run::MetricsTable& metrics, const std::string& name);
std::vector<double> last_layers(const run::MetricsTable& metrics, const std::string& name);
/// Whether there is a column of that name, or of that metric in any layer.
bool has_metric(const run::MetricsTable& metrics, const std::string& name);

/// The points of a curve of losses or gradient norms that are spikes by a rule.
Series spikes(const Series& curve, const stats::SpikeRule& rule, stats::SpikeSeries holds);

}  // namespace difftape::study
