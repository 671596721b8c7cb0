#pragma once
// Metrics over steps and layers, and how a run, or the runs of one seed at all learning rates,
// become one number: the functions that the registry of quantities names. `metric` is a name of
// train/run/records/metric_registry.h. NaN stands for a missing number.

#include <span>
#include <string>
#include <vector>

#include "train/run/records/metrics.h"
#include "train/stats/descriptive.h"
#include "train/stats/spikes.h"

namespace difftape::study {

struct RunRecord;
using stats::Series;

/// Returns a metric at the steps that logged it, infinities included.
Series logged(const run::MetricsTable& metrics, const std::string& name);
/// Returns a metric where it is finite.
Series curve(const run::MetricsTable& metrics, const std::string& name);
/// Returns a metric in each layer that logged it ("attn/entropy/0", ...).
std::vector<Series> layers_of(const run::MetricsTable& metrics, const std::string& name);
/// Returns whether there is a column of that name, or of that metric in any layer.
bool has_metric(const run::MetricsTable& metrics, const std::string& name);

namespace measures {

/// Over the steps that logged the metric.
double median(const RunRecord& run, const char* metric);
double p99(const RunRecord& run, const char* metric);
double largest(const RunRecord& run, const char* metric);
/// Over the layers, at the last step that logged any.
double largest_of_layers(const RunRecord& run, const char* metric);
double smallest_of_layers(const RunRecord& run, const char* metric);
double mean_of_layers(const RunRecord& run, const char* metric);
double mean_of_layers_at_first_step(const RunRecord& run, const char* metric);
/// Over all layers and all steps that logged any.
double largest_of_run(const RunRecord& run, const char* metric);

/// Nats per token; NaN for a diverged run.
double train_loss(const RunRecord& run, const char* metric);
double val_loss(const RunRecord& run, const char* metric);
/// The last validation loss, at most the loss at init, which stands for a diverged run.
double final_loss(const RunRecord& run, const char* metric);
/// 1 or 0; NaN for a run without steps.
double diverged(const RunRecord& run, const char* metric);

/// Returns the seconds of training at the end of each step, over all resumes.
Series training_clock(const RunRecord& run);
double training_seconds(const RunRecord& run, const char* metric);
/// Tokens seen when a loss was first logged below 2.5.
double tokens_to_loss(const RunRecord& run, const char* metric);

/// Returns the spikes of train/loss or optim/grad_norm after the first 10 % of the steps, by the
/// rule of the run, infinities included.
Series counted_spikes(const RunRecord& run, const char* metric);
/// Their fraction of the steps after the first 10 % for which the rule had its min_history.
double spike_fraction(const RunRecord& run, const char* metric);
/// That fraction times all steps after the first 10 %.
double spike_count(const RunRecord& run, const char* metric);
/// The 99th percentile over the median, after the first 10 % of the steps.
double tail(const RunRecord& run, const char* metric);
/// Over the second half of the steps up to the last one before the learning rate falls: the
/// exponent a of norm ~ step^a, and the standard deviation over the median. NaN below 50 steps.
double late_growth(const RunRecord& run, const char* metric);
double late_variation(const RunRecord& run, const char* metric);
/// Over the same steps, the slope of the loss against log2(step). NaN below four validations.
double loss_slope(const RunRecord& run, const char* metric);

/// Of complete runs of one seed, ascending lr, at least two: the sensitivity of Wortsman et al.
/// 2023, NaN if all diverged; the final loss at the highest rate over the loss at the lowest.
double lr_sensitivity(std::span<const RunRecord* const> runs);
double lr_penalty(std::span<const RunRecord* const> runs);

}  // namespace measures
}  // namespace difftape::study
