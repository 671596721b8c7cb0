#pragma once
// How one run, or the runs of one seed at all learning rates, become one number: what the registry
// of quantities names. NaN where there is no such number. `metric` is one of
// train/run/records/metric_registry.h.

#include <span>

#include "train/stats/descriptive.h"

namespace difftape::study {

struct RunRecord;

namespace measures {

/// Over the steps that logged the metric the median, the 99th percentile and the largest; over the
/// layers, at the last step that logged any, the largest, the smallest and the mean.
double median(const RunRecord& run, const char* metric);
double p99(const RunRecord& run, const char* metric);
double largest(const RunRecord& run, const char* metric);
double largest_of_layers(const RunRecord& run, const char* metric);
double smallest_of_layers(const RunRecord& run, const char* metric);
double mean_of_layers(const RunRecord& run, const char* metric);
double mean_of_layers_at_first_step(const RunRecord& run, const char* metric);
/// The largest over all layers and all steps that logged any.
double largest_of_run(const RunRecord& run, const char* metric);

/// Nats per token. NaN for a diverged run.
double train_loss(const RunRecord& run, const char* metric);
double val_loss(const RunRecord& run, const char* metric);
/// The last validation loss, at most the loss at init (RunRecord::initial_loss), which stands for a
/// diverged run.
double final_loss(const RunRecord& run, const char* metric);

/// 1 or 0: whether the run diverged. NaN of a run without steps.
double diverged(const RunRecord& run, const char* metric);

/// Seconds of training when a step had ended, over all resumes; no points if no speed was logged.
/// And those of all steps, or NaN.
stats::Series training_clock(const RunRecord& run);
double training_seconds(const RunRecord& run, const char* metric);
/// Tokens seen when a loss was first logged below 2.5; NaN if it never was.
double tokens_to_loss(const RunRecord& run, const char* metric);

/// The spikes of train/loss or optim/grad_norm that count: those after the first 10 % of the steps,
/// by the rule of the run. Infinities are among them.
stats::Series counted_spikes(const RunRecord& run, const char* metric);
/// Their share of the scored steps: those after the first 10 % for which the rule had its
/// min_history. NaN if there are none.
double spike_fraction(const RunRecord& run, const char* metric);
/// That share of all steps after the first 10 %.
double spike_count(const RunRecord& run, const char* metric);
/// After the first 10 % of the steps: the 99th percentile over the median.
double tail(const RunRecord& run, const char* metric);
/// The metric over the second half of the steps, up to the last one before the learning rate falls:
/// the exponent a of norm ~ step^a; its standard deviation over its median. NaN for fewer than 50
/// such steps.
double late_growth(const RunRecord& run, const char* metric);
double late_variation(const RunRecord& run, const char* metric);
/// Over the same steps, the slope of the loss against the logarithm to base 2 of the step: nats a
/// doubling. NaN for fewer than four validations.
double loss_slope(const RunRecord& run, const char* metric);

/// Of complete runs of one seed, ascending lr, at least two: the sensitivity of Wortsman et al.
/// 2023. NaN if all diverged.
double lr_sensitivity(std::span<const RunRecord* const> runs);
/// The final loss at the highest of the learning rates over the loss at the lowest. NaN if that one
/// diverged.
double lr_penalty(std::span<const RunRecord* const> runs);

}  // namespace measures
}  // namespace difftape::study
