#pragma once
// Functions of the registry of quantities: they reduce metrics over steps and layers of a run to
// one number. `metric` is a name of train/run/records/metric_registry.h. NaN means a missing
// number.

#include <span>
#include <string>
#include <vector>

#include "train/run/records/metrics.h"
#include "train/stats/descriptive.h"
#include "train/stats/spikes.h"

namespace difftape::study {

struct LoadedRun;
using stats::Series;

/// Returns a metric at the steps that logged it, infinities included.
Series logged(const run::MetricsTable& metrics, const std::string& name);
/// Returns the finite values of a metric.
Series curve(const run::MetricsTable& metrics, const std::string& name);
/// Returns a metric in each layer that logged it ("attn/entropy/0", ...).
std::vector<Series> layers_of(const run::MetricsTable& metrics, const std::string& name);
/// Returns whether a column has that name, or that metric in any layer.
bool has_metric(const run::MetricsTable& metrics, const std::string& name);

namespace measures {

/// Reduce over the steps that logged the metric.
double median(const LoadedRun& run, const char* metric);
double p99(const LoadedRun& run, const char* metric);
double largest(const LoadedRun& run, const char* metric);
/// Reduce over the layers, at the last (or first) step that logged any.
double largest_of_layers(const LoadedRun& run, const char* metric);
double smallest_of_layers(const LoadedRun& run, const char* metric);
double mean_of_layers(const LoadedRun& run, const char* metric);
double mean_of_layers_at_first_step(const LoadedRun& run, const char* metric);
/// Reduces over all layers and all steps that logged any.
double largest_of_run(const LoadedRun& run, const char* metric);

/// Return the final training loss in nats per token, and the last value of a metric of validation;
/// NaN for a diverged run.
double train_loss(const LoadedRun& run, const char* metric);
double last_validation(const LoadedRun& run, const char* metric);
/// Returns the last validation loss, capped at ln(model.vocab_size), the loss of a uniform guess. A
/// diverged run gets the cap.
double final_loss(const LoadedRun& run, const char* metric);
/// Returns 1 or 0; NaN for a run without steps.
double diverged(const LoadedRun& run, const char* metric);

/// Returns the seconds of training at the end of each step, over all resumes.
Series training_clock(const LoadedRun& run);
double training_seconds(const LoadedRun& run, const char* metric);
/// Returns the spikes (train/stats/spikes.h) of train/loss or optim/grad_norm after the first 10 %
/// of the steps, infinities included.
Series counted_spikes(const LoadedRun& run, const char* metric);
/// Returns counted_spikes divided by the steps after the first 10 % with at least
/// SpikeDetector::kMinHistory values before them.
double spike_fraction(const LoadedRun& run, const char* metric);
/// Returns spike_fraction times all steps after the first 10 %.
double spike_count(const LoadedRun& run, const char* metric);
/// Returns the spike score of OLMo 2 over all steps, in percent.
double spike_score(const LoadedRun& run, const char* metric);
/// Returns the 99th percentile divided by the median, after the first 10 % of the steps.
double tail(const LoadedRun& run, const char* metric);
/// Return the exponent a of norm ~ step^a, and the standard deviation divided by the median. They
/// use the second half of the steps up to the last one before the learning rate falls. NaN below 50
/// steps.
double late_growth(const LoadedRun& run, const char* metric);
double late_variation(const LoadedRun& run, const char* metric);
/// Returns the slope of the loss against log2(step) over the same steps. NaN below four
/// validations.
double loss_slope(const LoadedRun& run, const char* metric);

}  // namespace measures
}  // namespace difftape::study
