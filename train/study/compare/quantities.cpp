#include "train/study/compare/quantities.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "train/run/records/metric_registry.h"
#include "train/stats/descriptive.h"
#include "train/study/compare/measures.h"

namespace difftape::study {

namespace {

using run::metric;
using namespace measures;

constexpr unsigned kEverywhere = kRunTable | kStudyTable;
constexpr bool kCounts = true, kLeftOut = false;  // whether a diverged run counts

constexpr const char* kTrainLoss = metric("train/loss");
constexpr const char* kValLoss = metric("val/loss");
constexpr const char* kGradNorm = metric("optim/grad_norm");
constexpr const char* kSpeed = metric("throughput/tokens_per_sec");

constexpr const char* kMeanOfLayers = "mean over the layers, at the last step that logged it";
constexpr const char* kLargestOfLayers = "largest over the layers, at the last step that logged it";
constexpr const char* kLargestOfRun =
    "largest over tokens, heads, layers and the steps that logged it";

const Quantity kQuantities[] = {
    {"train_loss", "training loss", "nats per token", kTrainLoss, train_loss,
     "mean over the last 5 % of the steps, at least 10; none if diverged", Scale::difference, 4,
     kLeftOut, Column{"loss", "train", Format::loss, kRunTable}},
    {"val_loss", "validation loss", "nats per token", kValLoss, last_validation,
     "the last validation; none if diverged", Scale::difference, 4, kLeftOut,
     Column{"loss", "val", Format::loss, kRunTable, true}},
    {"final_loss", "final loss", "nats per token", kValLoss, final_loss,
     "the last validation loss, capped at ln(vocab_size), which a diverged run gets",
     Scale::difference, 4, kCounts},
    {"context_gain", "gain from distant context", "nats per token", metric("val/context_gain"),
     last_validation,
     "loss in the second quarter of a sequence minus loss in the second half, at the last "
     "validation; none if diverged",
     Scale::difference, 4},
    {"accuracy", "accuracy on the task", "fraction", metric("val/accuracy"), last_validation,
     "the last validation; none if diverged"},
    {"diverged", "runs that diverged", "fraction", kTrainLoss, diverged,
     "1 if the run diverged, else 0", Scale::difference, 2, kCounts},
    {"loss_spikes", "loss spikes", "spikes per run", kTrainLoss, spike_count,
     "loss_spike_fraction times the steps after the first 10 %", Scale::root, 1, kCounts,
     Column{"spikes", "loss", Format::count, kEverywhere}},
    {"grad_spikes", "gradient spikes", "spikes per run", kGradNorm, spike_count,
     "grad_norm_spike_fraction times the steps after the first 10 %", Scale::root, 1, kCounts,
     Column{"spikes", "grad", Format::count, kEverywhere}},
    {"loss_spike_fraction", "fraction of steps with a loss spike", "fraction", kTrainLoss,
     spike_fraction,
     "over the steps after the first 10 %, up to a divergence, with at least 64 steps before them",
     Scale::difference, 4, kCounts},
    {"grad_norm_spike_fraction", "fraction of steps with a gradient spike", "fraction", kGradNorm,
     spike_fraction, "over the same steps, for spikes of the gradient norm", Scale::difference, 4,
     kCounts},
    {"loss_spike_score", "spike score of the loss", "%", kTrainLoss, spike_score,
     "percentage of the steps whose loss is 7 standard deviations from the mean of the last 1000 "
     "(OLMo 2)",
     Scale::difference, 3, kCounts},
    {"grad_norm_median", "median gradient norm", "L2", kGradNorm, median, "median over the steps",
     Scale::ratio, 3, kLeftOut, Column{"grad_norm", "median", Format::norm, kEverywhere}},
    {"grad_norm_p99", "99th percentile of the gradient norm", "L2", kGradNorm, p99,
     "99th percentile over the steps", Scale::ratio, 3, kLeftOut,
     Column{"grad_norm", "p99", Format::norm, kRunTable}},
    {"grad_norm_max", "largest gradient norm", "L2", kGradNorm, largest, "largest over the steps",
     Scale::ratio, 3, kLeftOut, Column{"grad_norm", "max", Format::norm, kEverywhere}},
    {"grad_norm_p99_over_median", "99th percentile of the gradient norm over its median", "1",
     kGradNorm, tail, "over the steps after the first 10 %", Scale::ratio},
    {"grad_norm_growth_before_decay", "growth exponent of the gradient norm", "1", kGradNorm,
     late_growth,
     "exponent a of norm ~ step^a over the second half of the steps, up to where the learning rate "
     "falls; none for fewer than 50 steps"},
    {"grad_norm_sd_over_median", "standard deviation over median of the gradient norm", "1",
     kGradNorm, late_variation,
     "over the second half of the steps, up to where the learning rate falls; none for fewer than "
     "50 steps",
     Scale::ratio, 3, kLeftOut, Column{"grad_norm", "sd/median", Format::norm, kRunTable}},
    {"loss_slope", "validation loss per doubling of the steps", "nats per token", kValLoss,
     loss_slope,
     "slope against log2(step) over the second half of the steps, up to where the learning rate "
     "falls; none for fewer than four validations",
     Scale::difference, 4},
    {"tokens_per_sec", "speed", "tokens per second", kSpeed, median, "median over the steps",
     Scale::ratio, 3, kLeftOut, Column{"", "tokens/s", Format::whole, kRunTable}},
    {"train_seconds", "training time", "s", kSpeed, training_seconds,
     "time of the steps (batch, forward, backward, update), summed over all resumes", Scale::ratio},
    {"attention_logit", "largest attention logit", "1", metric("attn/logit_max"), largest_of_layers,
     kLargestOfLayers, Scale::ratio},
    {"attention_entropy", "entropy of attention", "nats", metric("attn/entropy"), mean_of_layers,
     kMeanOfLayers},
    {"attention_sparsity", "fraction of attention weights below 0.001", "fraction",
     metric("attn/sparsity"), mean_of_layers, kMeanOfLayers},
    {"rounding_error", "error of attention in bfloat16", "1", metric("attn/rounding_error"),
     mean_of_layers, kMeanOfLayers, Scale::ratio},
    {"output_cosine", "smallest cosine of output projections", "1", metric("attn/output_cosine"),
     smallest_of_layers,
     "for heads that share values, smallest over the layers, at the last step that logged "
     "it"},
    {"lambda_rms_correlation", "correlation of lambda and context RMS", "1",
     metric("attn/lambda_rms_correlation"), mean_of_layers, kMeanOfLayers},
    {"lambda_max", "largest lambda", "1", metric("attn/lambda_max"), largest_of_run, kLargestOfRun,
     Scale::difference, 3, kCounts},
    {"largest_context_rms", "largest context RMS", "1", metric("attn/context_rms_max"),
     largest_of_run, kLargestOfRun, Scale::ratio, 3, kCounts},
    {"expert_load_max", "largest load of an expert", "fraction", metric("moe/load_max"),
     largest_of_layers, kLargestOfLayers, Scale::ratio},
    {"router_entropy", "entropy of the router", "nats", metric("moe/router_entropy"),
     mean_of_layers, kMeanOfLayers},
    {"hidden_state", "largest hidden state", "1", metric("act/max"), largest_of_layers,
     kLargestOfLayers, Scale::ratio},
    {"kurtosis", "kurtosis of hidden states", "1", metric("act/kurtosis"), mean_of_layers,
     kMeanOfLayers, Scale::ratio},
    {"sink_rate", "sink rate", "fraction", metric("attn/sink_rate"), mean_of_layers, kMeanOfLayers},
    {"first_token", "attention to the first token", "fraction", metric("attn/first_token_mass"),
     mean_of_layers, kMeanOfLayers},
    {"first_context_rms", "context RMS after the first step", "1", metric("attn/context_rms"),
     mean_of_layers_at_first_step,
     "mean over the layers after the first step, the earliest diagnostics", Scale::ratio, 3,
     kCounts},
    {"lr_sensitivity", "lr sensitivity", "nats per token", kValLoss, nullptr,
     "mean over the learning rates of final_loss minus its lowest value; none if all runs of the "
     "seed diverged",
     Scale::difference, 4, kCounts, Column(), OverRates::sensitivity},
    {"lr_penalty", "penalty of the higher learning rate", "nats per token", kValLoss, nullptr,
     "final_loss at the highest learning rate minus final_loss at the lowest", Scale::difference, 4,
     kCounts, Column(), OverRates::penalty},
};

}  // namespace

double on_scale(double value, Scale scale) {
  return scale == Scale::ratio ? std::log(value) : scale == Scale::root ? std::sqrt(value) : value;
}

double from_scale(double value, Scale scale) {
  return scale == Scale::ratio ? std::exp(value) : scale == Scale::root ? value * value : value;
}

double mean_from_scale(std::span<const double> values, Scale scale) {
  if (scale != Scale::root) return from_scale(stats::mean(values), scale);
  std::vector<double> counts;
  for (const double value : values) counts.push_back(from_scale(value, scale));
  return stats::mean(counts);
}

const char* what_differs(Scale scale) {
  return scale == Scale::ratio  ? "ratio"
         : scale == Scale::root ? "difference of square roots"
                                : "difference";
}

std::string unit_of(const Quantity& quantity, run::DataKind data) {
  const bool loss = quantity.unit == std::string_view(run::loss_unit(run::DataKind::tokens));
  return loss ? run::loss_unit(data) : quantity.unit;
}

std::span<const Quantity> quantities() { return kQuantities; }

const Quantity& Quantity::of_one_run() const {
  return is_of_seed() ? quantity("final_loss") : *this;
}

const Quantity* find_quantity(std::string_view name) {
  const auto found = std::ranges::find(kQuantities, name, &Quantity::name);
  return found == std::end(kQuantities) ? nullptr : &*found;
}

const Quantity& quantity(std::string_view name) {
  if (const Quantity* found = find_quantity(name)) return *found;
  throw std::logic_error(fmt::format("no quantity is named {}", name));
}

}  // namespace difftape::study
