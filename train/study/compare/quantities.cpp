#include "train/study/compare/quantities.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "train/run/records/metric_registry.h"
#include "train/stats/descriptive.h"
#include "train/stats/sensitivity.h"
#include "train/study/compare/curves.h"
#include "train/study/compare/run_record.h"

namespace difftape::study {

namespace {

using run::metric;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double last(const RunRecord& run, const char* name) {
  const std::vector<double> values = logged(run.metrics, name).value;
  return values.empty() ? kNaN : values.back();
}

double quantile(const RunRecord& run, const char* name, double q) {
  return stats::quantile(logged(run.metrics, name).value, q);
}

double largest_of_layers(const RunRecord& run, const char* metric) {
  return stats::quantile(last_layers(run.metrics, metric), 1);
}

double mean_of_layers(const RunRecord& run, const char* metric) {
  return stats::mean(last_layers(run.metrics, metric));
}

double train_loss(const RunRecord& run) {
  const std::vector<double> losses = logged(run.metrics, metric("train/loss")).value;
  const std::size_t count = std::max<std::size_t>(10, losses.size() / 20);
  if (run.diverged()) return kNaN;
  return stats::mean(std::span(losses).last(std::min(count, losses.size())));
}

double val_loss(const RunRecord& run) {
  return run.diverged() ? kNaN : last(run, metric("val/loss"));
}

double capped_val_loss(const RunRecord& run) {
  const double final = val_loss(run);
  return run.finished() && std::isnan(final) ? kNaN : stats::capped_loss(final, run.initial_loss());
}

double training_seconds(const RunRecord& run) {
  const auto speeds = run.metrics.columns.find(metric("throughput/tokens_per_sec"));
  if (speeds == run.metrics.columns.end()) return kNaN;
  double seconds = 0;
  for (const double speed : speeds->second) {
    if (speed > 0) seconds += static_cast<double>(run.status.tokens_per_step) / speed;
  }
  return seconds;
}

/// Tokens seen when a metric was first logged below a value; NaN if it never was.
double tokens_until(const RunRecord& run, const char* name, double value) {
  const Series series = logged(run.metrics, name);
  const auto below = std::find_if(series.value.begin(), series.value.end(),
                                  [value](double each) { return each < value; });
  if (below == series.value.end()) return kNaN;
  const double step = series.step[static_cast<std::size_t>(below - series.value.begin())];
  return step * static_cast<double>(run.status.tokens_per_step);
}

double context_rms_after_first_step(const RunRecord& run) {
  const bool first = !run.metrics.step.empty() && run.metrics.step.front() == 1;
  return first ? stats::mean(layers_at(run.metrics, metric("attn/context_rms"), 0)) : kNaN;
}

double lr_sensitivity(std::span<const RunRecord* const> runs) {
  if (std::none_of(runs.begin(), runs.end(), [](const RunRecord* run) { return run->finished(); }))
    return kNaN;
  stats::Groups losses;
  double known = kNaN;  // of the initial weights, which the runs of a seed share
  for (const RunRecord* run : runs) {
    if (std::isfinite(run->initial_loss())) known = run->initial_loss();
  }
  for (const RunRecord* run : runs) {
    const bool at_first_step = !run->finished() && !std::isfinite(run->initial_loss());
    losses.push_back({at_first_step ? known : capped_val_loss(*run)});
  }
  return stats::lr_sensitivity(losses);
}

double stable_lrs(std::span<const RunRecord* const> runs) {
  const auto fails = [](const RunRecord* run) {
    return !run->finished() || val_loss(*run) >= run->initial_loss();
  };
  return static_cast<double>(std::find_if(runs.begin(), runs.end(), fails) - runs.begin());
}

double unstable_steps(std::span<const RunRecord* const> runs) {
  std::vector<double> shares;
  for (const RunRecord* run : runs) {
    const auto all = static_cast<double>(run->status.steps);
    const auto done = run->finished() ? all : static_cast<double>(run->status.step);
    const double spikes =
        (last(*run, metric("spike/score_loss")) + last(*run, metric("spike/score_grad"))) / 2;
    shares.push_back((spikes * done + 100 * (all - done)) / all);
  }
  return stats::mean(shares);
}

using Run = const RunRecord&;

constexpr unsigned kEverywhere = kRunTable | kStudyTable | kIndex;

const Quantity kQuantities[] = {
    {.name = "train_loss",
     .unit = "nats per token",
     .what = "mean of the last 5 % of the steps, at least 10; none of a diverged run",
     .metric = metric("train/loss"),
     .of_run = train_loss,
     .column = {"loss", "train", Format::loss, kRunTable | kIndex}},
    {.name = "val_loss",
     .unit = "nats per token",
     .what = "the last validation; none of a diverged run",
     .metric = metric("val/loss"),
     .of_run = val_loss,
     .column = {"loss", "val", Format::loss, kEverywhere, true},
     .claims = {"validation loss at equal learning rates", Lrs::shared, 4}},
    {.name = "spike_score_loss",
     .unit = "%",
     .what = "steps whose loss was a spike",
     .metric = metric("spike/score_loss"),
     .of_run = [](Run run) { return last(run, metric("spike/score_loss")); },
     .column = {"spike score %", "loss", Format::percent, kEverywhere},
     .claims = {"loss spikes %", Lrs::large, 2}},
    {.name = "spike_score_grad",
     .unit = "%",
     .what = "steps whose gradient norm was a spike",
     .metric = metric("spike/score_grad"),
     .of_run = [](Run run) { return last(run, metric("spike/score_grad")); },
     .column = {"spike score %", "grad", Format::percent, kEverywhere},
     .claims = {"gradient spikes %", Lrs::large, 2}},
    {.name = "grad_norm_median",
     .unit = "L2",
     .what = "median over the steps",
     .metric = metric("optim/grad_norm"),
     .of_run = [](Run run) { return quantile(run, metric("optim/grad_norm"), 0.5); },
     .column = {"grad_norm", "median", Format::norm, kEverywhere}},
    {.name = "grad_norm_p99",
     .unit = "L2",
     .what = "99th percentile over the steps",
     .metric = metric("optim/grad_norm"),
     .of_run = [](Run run) { return quantile(run, metric("optim/grad_norm"), 0.99); },
     .column = {"grad_norm", "p99", Format::norm, kEverywhere}},
    {.name = "grad_norm_max",
     .unit = "L2",
     .what = "largest over the steps",
     .metric = metric("optim/grad_norm"),
     .of_run = [](Run run) { return quantile(run, metric("optim/grad_norm"), 1); },
     .column = {"grad_norm", "max", Format::norm, kEverywhere}},
    {.name = "grad_norm_late_variance",
     .unit = "L2 squared",
     .what = "population variance over the last quarter of the steps",
     .metric = metric("optim/grad_norm"),
     .of_run =
         [](Run run) {
           return stats::late_variance(logged(run.metrics, metric("optim/grad_norm")));
         },
     .column = {"grad_norm", "late var", Format::power, kEverywhere}},
    {.name = "tokens_per_sec",
     .unit = "tokens per second",
     .what = "median over the steps",
     .metric = metric("throughput/tokens_per_sec"),
     .of_run = [](Run run) { return quantile(run, metric("throughput/tokens_per_sec"), 0.5); },
     .column = {"", "tokens/s", Format::whole, kEverywhere}},
    {.name = "seconds",
     .unit = "s",
     .what = "time of the steps (batch, forward, backward, update), added up over all resumes",
     .metric = metric("throughput/tokens_per_sec"),
     .of_run = training_seconds,
     .column = {"", "seconds", Format::whole, kIndex}},
    {.name = "tokens_to_loss",
     .unit = "tokens",
     .what = "tokens seen at the first validation with a loss below 2.5; none if there was none",
     .metric = metric("val/loss"),
     .of_run = [](Run run) { return tokens_until(run, metric("val/loss"), 2.5); },
     .scale = Scale::ratio,
     .column = {"", "tokens to 2.5", Format::whole, kStudyTable | kIndex}},
    {.name = "capped_val_loss",
     .unit = "nats per token",
     .what = "the last validation, at most the initial loss, which stands for a diverged run",
     .metric = metric("val/loss"),
     .of_run = capped_val_loss,
     .claims = {"validation loss, each at its best learning rate", Lrs::best, 4, Diverged::count}},
    {.name = "grad_norm_growth",
     .unit = "1",
     .what = "exponent a of norm ~ step^a over the second half of the steps",
     .metric = metric("optim/grad_norm"),
     .of_run =
         [](Run run) { return stats::late_growth(curve(run.metrics, metric("optim/grad_norm"))); },
     .claims = {"growth exponent of the gradient norm, second half", Lrs::shared, 3}},
    {.name = "grad_norm_late_variation",
     .unit = "1",
     .what = "standard deviation over median in the last quarter of the steps",
     .metric = metric("optim/grad_norm"),
     .of_run =
         [](Run run) {
           return stats::late_variation(curve(run.metrics, metric("optim/grad_norm")));
         },
     .scale = Scale::ratio,
     .claims = {"std / median of the gradient norm, last quarter", Lrs::shared, 3}},
    {.name = "attention_logit",
     .unit = "1",
     .what = "largest over the layers, at the last step that logged it",
     .metric = metric("attn/logit_max"),
     .of_run = [](Run run) { return largest_of_layers(run, metric("attn/logit_max")); },
     .scale = Scale::ratio,
     .claims = {"largest attention logit", Lrs::shared, 3}},
    {.name = "hidden_state",
     .unit = "1",
     .what = "largest over the layers, at the last step that logged it",
     .metric = metric("act/max"),
     .of_run = [](Run run) { return largest_of_layers(run, metric("act/max")); },
     .scale = Scale::ratio,
     .claims = {"largest hidden state", Lrs::shared, 3}},
    {.name = "kurtosis",
     .unit = "1",
     .what = "mean over the layers, at the last step that logged it",
     .metric = metric("act/kurtosis"),
     .of_run = [](Run run) { return mean_of_layers(run, metric("act/kurtosis")); },
     .scale = Scale::ratio,
     .claims = {"kurtosis of hidden states", Lrs::shared, 3}},
    {.name = "sink_rate",
     .unit = "share",
     .what = "mean over the layers, at the last step that logged it",
     .metric = metric("attn/sink_rate"),
     .of_run = [](Run run) { return mean_of_layers(run, metric("attn/sink_rate")); },
     .claims = {"sink rate", Lrs::shared, 3}},
    {.name = "first_token",
     .unit = "share",
     .what = "mean over the layers, at the last step that logged it",
     .metric = metric("attn/first_token"),
     .of_run = [](Run run) { return mean_of_layers(run, metric("attn/first_token")); },
     .claims = {"attention to the first token", Lrs::shared, 3}},
    {.name = "first_context_rms",
     .unit = "1",
     .what = "mean over the layers after the first step, the earliest diagnostics",
     .metric = metric("attn/context_rms"),
     .of_run = context_rms_after_first_step,
     .scale = Scale::ratio,
     .claims = {"context RMS after the first step", Lrs::shared, 3, Diverged::count}},
    {.name = "lr_sensitivity",
     .unit = "nats per token",
     .what = "mean over the learning rates of the capped loss above the best one's; none if all "
             "runs of the seed diverged",
     .metric = metric("val/loss"),
     .of_seed = lr_sensitivity,
     .claims = {"lr sensitivity", Lrs::shared, 4, Diverged::count_unlogged}},
    {.name = "stable_lrs",
     .unit = "learning rates",
     .what = "how many, from the lowest up, trained before the first that did not: a run trained "
             "if it finished with a validation loss below its initial loss",
     .metric = metric("val/loss"),
     .of_seed = stable_lrs,
     .claims = {"stable learning rates", Lrs::shared, 2, Diverged::count_unlogged}},
    {.name = "unstable_steps",
     .unit = "%",
     .what = "steps that were spikes (mean of the loss and gradient scores) or that a diverged run "
             "never reached, mean over the learning rates",
     .metric = metric("spike/score_loss"),
     .of_seed = unstable_steps,
     .claims = {"steps in spikes or after divergence %", Lrs::shared, 2, Diverged::count}},
};

}  // namespace

std::span<const Quantity> quantities() { return kQuantities; }

const Quantity& quantity(std::string_view name) {
  for (const Quantity& each : kQuantities) {
    if (each.name == name) return each;
  }
  throw std::logic_error(fmt::format("no quantity is called {}", name));
}

}  // namespace difftape::study
