#include "train/study/compare/quantities.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "train/run/records/metric_registry.h"
#include "train/stats/descriptive.h"
#include "train/study/compare/curves.h"
#include "train/study/compare/measures.h"
#include "train/study/compare/run_record.h"

namespace difftape::study {

namespace {

using run::metric;
using namespace measures;
using Run = const RunRecord&;

constexpr unsigned kEverywhere = kRunTable | kStudyTable | kIndex;

const Quantity kQuantities[] = {
    {.name = "train_loss",
     .label = "training loss",
     .unit = "nats per token",
     .what = "mean of the last 5 % of the steps, at least 10; none of a diverged run",
     .metric = metric("train/loss"),
     .of_run = train_loss,
     .digits = 4,
     .column = {"loss", "train", Format::loss, kRunTable | kIndex}},
    {.name = "val_loss",
     .label = "validation loss",
     .unit = "nats per token",
     .what = "the last validation; none of a diverged run",
     .metric = metric("val/loss"),
     .of_run = val_loss,
     .digits = 4,
     .column = {"loss", "val", Format::loss, kEverywhere, true}},
    {.name = "capped_val_loss",
     .label = "validation loss, capped",
     .unit = "nats per token",
     .what = "the last validation, at most the loss of failure, which stands for a diverged run",
     .metric = metric("val/loss"),
     .of_run = capped_val_loss,
     .digits = 4,
     .of_diverged = true},
    {.name = "trained",
     .label = "runs that trained",
     .unit = "share",
     .what = "1 if the run finished with a validation loss below that of failure, else 0",
     .metric = metric("val/loss"),
     .of_run = trained,
     .digits = 2,
     .of_diverged = true},
    {.name = "diverged",
     .label = "runs that diverged",
     .unit = "share",
     .what = "1 if the run diverged, else 0",
     .metric = metric("train/loss"),
     .of_run = diverged,
     .digits = 2,
     .of_diverged = true},
    {.name = "loss_spikes",
     .label = "loss spikes",
     .unit = "spikes per run",
     .what = "after the first 10 % of the steps, by the rule of the run, or olmo_core's where "
             "olmo2's window is longer than a third of it; of a diverged run at the rate it had",
     .metric = metric("train/loss"),
     .of_run = [](Run run) { return spike_count(run, metric("train/loss")); },
     .scale = Scale::root,
     .digits = 1,
     .of_diverged = true,
     .column = {"spikes", "loss", Format::count, kEverywhere}},
    {.name = "grad_spikes",
     .label = "gradient spikes",
     .unit = "spikes per run",
     .what = "those of the gradient norm, counted likewise",
     .metric = metric("optim/grad_norm"),
     .of_run = [](Run run) { return spike_count(run, metric("optim/grad_norm")); },
     .scale = Scale::root,
     .digits = 1,
     .of_diverged = true,
     .column = {"spikes", "grad", Format::count, kEverywhere}},
    {.name = "grad_norm_median",
     .label = "median gradient norm",
     .unit = "L2",
     .what = "median over the steps",
     .metric = metric("optim/grad_norm"),
     .of_run = [](Run run) { return quantile(run, metric("optim/grad_norm"), 0.5); },
     .scale = Scale::ratio,
     .column = {"grad_norm", "median", Format::norm, kEverywhere}},
    {.name = "grad_norm_p99",
     .label = "99th percentile of the gradient norm",
     .unit = "L2",
     .what = "99th percentile over the steps",
     .metric = metric("optim/grad_norm"),
     .of_run = [](Run run) { return quantile(run, metric("optim/grad_norm"), 0.99); },
     .scale = Scale::ratio,
     .column = {"grad_norm", "p99", Format::norm, kEverywhere}},
    {.name = "grad_norm_max",
     .label = "largest gradient norm",
     .unit = "L2",
     .what = "largest over the steps",
     .metric = metric("optim/grad_norm"),
     .of_run = [](Run run) { return quantile(run, metric("optim/grad_norm"), 1); },
     .scale = Scale::ratio,
     .column = {"grad_norm", "max", Format::norm, kEverywhere}},
    {.name = "grad_norm_excursion",
     .label = "largest gradient norm over the median",
     .unit = "1",
     .what = "after the first 10 % of the steps",
     .metric = metric("optim/grad_norm"),
     .of_run = [](Run run) { return excursion(run, metric("optim/grad_norm")); },
     .scale = Scale::ratio},
    {.name = "grad_norm_late_variance",
     .label = "late variance of the gradient norm",
     .unit = "L2 squared",
     .what = "population variance over the last quarter of the steps",
     .metric = metric("optim/grad_norm"),
     .of_run =
         [](Run run) {
           return stats::late_variance(logged(run.metrics, metric("optim/grad_norm")));
         },
     .scale = Scale::ratio,
     .column = {"grad_norm", "late var", Format::power, kEverywhere}},
    {.name = "grad_norm_growth",
     .label = "growth exponent of the gradient norm",
     .unit = "1",
     .what = "a of norm ~ step^a over the second half of the steps, up to where the learning rate "
             "falls; none of fewer than 50 steps",
     .metric = metric("optim/grad_norm"),
     .of_run = late_growth},
    {.name = "grad_norm_late_variation",
     .label = "standard deviation over median of the gradient norm",
     .unit = "1",
     .what = "over the same steps",
     .metric = metric("optim/grad_norm"),
     .of_run = late_variation,
     .scale = Scale::ratio},
    {.name = "tokens_per_sec",
     .label = "speed",
     .unit = "tokens per second",
     .what = "median over the steps",
     .metric = metric("throughput/tokens_per_sec"),
     .of_run = [](Run run) { return quantile(run, metric("throughput/tokens_per_sec"), 0.5); },
     .scale = Scale::ratio,
     .column = {"", "tokens/s", Format::whole, kEverywhere}},
    {.name = "seconds",
     .label = "training time",
     .unit = "s",
     .what = "time of the steps (batch, forward, backward, update), added up over all resumes",
     .metric = metric("throughput/tokens_per_sec"),
     .of_run = training_seconds,
     .scale = Scale::ratio,
     .column = {"", "seconds", Format::whole, kIndex}},
    {.name = "tokens_to_loss",
     .label = "tokens to a validation loss of 2.5",
     .unit = "tokens",
     .what = "tokens seen at the first validation with a loss below 2.5; none if there was none",
     .metric = metric("val/loss"),
     .of_run = [](Run run) { return tokens_until(run, metric("val/loss"), 2.5); },
     .scale = Scale::ratio,
     .column = {"", "tokens to 2.5", Format::whole, kStudyTable | kIndex}},
    {.name = "attention_logit",
     .label = "largest attention logit",
     .unit = "1",
     .what = "largest over the layers, at the last step that logged it",
     .metric = metric("attn/logit_max"),
     .of_run = [](Run run) { return largest_of_layers(run, metric("attn/logit_max")); },
     .scale = Scale::ratio},
    {.name = "hidden_state",
     .label = "largest hidden state",
     .unit = "1",
     .what = "largest over the layers, at the last step that logged it",
     .metric = metric("act/max"),
     .of_run = [](Run run) { return largest_of_layers(run, metric("act/max")); },
     .scale = Scale::ratio},
    {.name = "kurtosis",
     .label = "kurtosis of hidden states",
     .unit = "1",
     .what = "mean over the layers, at the last step that logged it",
     .metric = metric("act/kurtosis"),
     .of_run = [](Run run) { return mean_of_layers(run, metric("act/kurtosis")); },
     .scale = Scale::ratio},
    {.name = "sink_rate",
     .label = "sink rate",
     .unit = "share",
     .what = "mean over the layers, at the last step that logged it",
     .metric = metric("attn/sink_rate"),
     .of_run = [](Run run) { return mean_of_layers(run, metric("attn/sink_rate")); }},
    {.name = "first_token",
     .label = "attention to the first token",
     .unit = "share",
     .what = "mean over the layers, at the last step that logged it",
     .metric = metric("attn/first_token"),
     .of_run = [](Run run) { return mean_of_layers(run, metric("attn/first_token")); }},
    {.name = "first_context_rms",
     .label = "context RMS after the first step",
     .unit = "1",
     .what = "mean over the layers after the first step, the earliest diagnostics",
     .metric = metric("attn/context_rms"),
     .of_run = context_rms_after_first_step,
     .scale = Scale::ratio,
     .of_diverged = true},
    {.name = "lr_sensitivity",
     .label = "lr sensitivity",
     .unit = "nats per token",
     .what = "mean over the learning rates of the loss, at most the initial one, above the best "
             "one's; none if all runs of the seed diverged",
     .metric = metric("val/loss"),
     .of_seed = lr_sensitivity,
     .digits = 4,
     .of_diverged = true},
    {.name = "critical_lr",
     .label = "critical learning rate",
     .unit = "1",
     .what = "where the loss crosses that of failure, on a line over log(lr) between the last rate "
             "that trained and the next; the end of the ladder if it does not",
     .metric = metric("val/loss"),
     .of_seed = critical_lr,
     .scale = Scale::ratio,
     .of_diverged = true},
};

}  // namespace

std::span<const Quantity> quantities() { return kQuantities; }

const Quantity* find_quantity(std::string_view name) {
  const auto found = std::ranges::find(kQuantities, name, &Quantity::name);
  return found == std::end(kQuantities) ? nullptr : &*found;
}

const Quantity& quantity(std::string_view name) {
  if (const Quantity* found = find_quantity(name)) return *found;
  throw std::logic_error(fmt::format("no quantity is called {}", name));
}

double on_scale(double value, Scale scale) {
  switch (scale) {
    case Scale::difference:
      return value;
    case Scale::ratio:
      return std::log(value);
    case Scale::root:
      break;
  }
  return std::sqrt(value);
}

double from_scale(double value, Scale scale) {
  switch (scale) {
    case Scale::difference:
      return value;
    case Scale::ratio:
      return std::exp(value);
    case Scale::root:
      break;
  }
  return value * value;
}

}  // namespace difftape::study
