#include "train/study/compare/claims/quantities.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "train/stats/descriptive.h"
#include "train/stats/sensitivity.h"

namespace difftape::study {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

bool finished(const RunRecord& run) { return run.summary.status.state == run::RunState::finished; }

/// Whether `name` is `metric` itself or that of a layer, "metric/3".
bool names_metric(const std::string& name, const std::string& metric) {
  if (!name.starts_with(metric)) return false;
  const std::string rest = name.substr(metric.size());
  return rest.empty() || (rest.size() > 1 && rest.front() == '/' &&
                          std::all_of(rest.begin() + 1, rest.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; }));
}

/// The values of all layers in a row of metrics.jsonl.
std::vector<double> layers_at(const run::MetricsTable& metrics, const std::string& metric,
                              std::size_t row) {
  std::vector<double> values;
  for (const auto& [name, column] : metrics.columns) {
    if (names_metric(name, metric) && !std::isnan(column[row])) values.push_back(column[row]);
  }
  return values;
}

/// The values of all layers at the last step that logged them.
std::vector<double> last_layers(const RunRecord& run, const std::string& metric) {
  for (std::size_t row = run.metrics.step.size(); row-- > 0;) {
    std::vector<double> values = layers_at(run.metrics, metric, row);
    if (!values.empty()) return values;
  }
  return {};
}

double largest(const RunRecord& run, const char* metric) {
  const std::vector<double> values = last_layers(run, metric);
  return finished(run) ? stats::quantile(values, 1) : kNaN;
}

double average(const RunRecord& run, const char* metric) {
  return finished(run) ? stats::mean(last_layers(run, metric)) : kNaN;
}

/// optim/grad_norm from `share` of the run's steps on.
Curve late_grad_norm(const RunRecord& run, double share) {
  const Curve whole = curve(run.metrics, "optim/grad_norm");
  Curve late;
  for (std::size_t i = 0; i < whole.step.size(); ++i) {
    if (whole.step[i] <= share * whole.step.back()) continue;
    late.step.push_back(whole.step[i]);
    late.value.push_back(whole.value[i]);
  }
  return late;
}

double late_growth(const RunRecord& run) {
  const Curve late = late_grad_norm(run, 0.5);
  return finished(run) ? stats::growth_exponent(late.step, late.value) : kNaN;
}

double late_variation(const RunRecord& run) {
  const Curve late = late_grad_norm(run, 0.75);
  const double center = stats::quantile(late.value, 0.5);
  return finished(run) && late.value.size() > 1 && center > 0
             ? std::sqrt(stats::variance(late.value)) / center
             : kNaN;
}

double final_loss(const RunRecord& run) { return finished(run) ? run.summary.val_loss : kNaN; }

double capped(const RunRecord& run) {
  return finished(run) && std::isnan(run.summary.val_loss)
             ? kNaN
             : stats::capped_loss(final_loss(run), run.loss_at_init());
}

double sensitivity(std::span<const RunRecord* const> runs) {
  if (std::none_of(runs.begin(), runs.end(), [](const RunRecord* run) { return finished(*run); }))
    return kNaN;
  stats::Groups losses;
  double known = kNaN;  // of the initial weights, which the runs of a seed share
  for (const RunRecord* run : runs) {
    if (std::isfinite(run->loss_at_init())) known = run->loss_at_init();
  }
  for (const RunRecord* run : runs) {
    const bool at_init = !finished(*run) && !std::isfinite(run->loss_at_init());
    losses.push_back({at_init ? known : capped(*run)});
  }
  return stats::lr_sensitivity(losses);
}

double rungs(std::span<const RunRecord* const> runs) {
  const auto fails = [](const RunRecord* run) {
    return !finished(*run) || final_loss(*run) >= run->loss_at_init();
  };
  return static_cast<double>(std::find_if(runs.begin(), runs.end(), fails) - runs.begin());
}

double unstable_steps(std::span<const RunRecord* const> runs) {
  std::vector<double> shares;
  for (const RunRecord* run : runs) {
    const RunSummary& summary = run->summary;
    const auto all = static_cast<double>(summary.status.steps);
    const auto done = finished(*run) ? all : static_cast<double>(summary.status.step);
    const double spikes = (summary.spike_score_loss + summary.spike_score_grad) / 2;
    shares.push_back((spikes * done + 100 * (all - done)) / all);
  }
  return stats::mean(shares);
}

double loss_spikes(const RunRecord& run) {
  return finished(run) ? run.summary.spike_score_loss : kNaN;
}
double grad_spikes(const RunRecord& run) {
  return finished(run) ? run.summary.spike_score_grad : kNaN;
}
double top_logit(const RunRecord& run) { return largest(run, "attn/logit_max"); }
double top_hidden(const RunRecord& run) { return largest(run, "act/max"); }
double kurtosis(const RunRecord& run) { return average(run, "act/kurtosis"); }
double sink_rate(const RunRecord& run) { return average(run, "attn/sink_rate"); }
double first_token(const RunRecord& run) { return average(run, "attn/first_token"); }

double context_rms_after_first_step(const RunRecord& run) {
  const bool first = !run.metrics.step.empty() && run.metrics.step.front() == 1;
  return first ? stats::mean(layers_at(run.metrics, "attn/context_rms", 0)) : kNaN;
}

}  // namespace

const Quantity kLossAtBestRate{
    "validation loss, each at its best rate", "val/loss", Rates::best, false, 4, capped};
const Quantity kLossAtEqualRates{
    "validation loss at equal rates", "val/loss", Rates::shared, false, 4, final_loss};
const Quantity kLossSpikes{"loss spikes %", "spike/score_loss", Rates::large, false, 2,
                           loss_spikes};
const Quantity kGradSpikes{"gradient spikes %", "spike/score_grad", Rates::large, false, 2,
                           grad_spikes};
const Quantity kRungs{
    "rates that train", "val/loss", Rates::shared, false, 2, nullptr, rungs, true};
const Quantity kLateGrowth{"growth exponent of the gradient norm, second half",
                           "optim/grad_norm",
                           Rates::shared,
                           false,
                           3,
                           late_growth};
const Quantity kLateVariation{"std / median of the gradient norm, last quarter",
                              "optim/grad_norm",
                              Rates::shared,
                              true,
                              3,
                              late_variation};
const Quantity kTopLogit{
    "largest attention logit", "attn/logit_max", Rates::shared, true, 3, top_logit};
const Quantity kTopHidden{"largest hidden state", "act/max", Rates::shared, true, 3, top_hidden};
const Quantity kKurtosis{
    "kurtosis of hidden states", "act/kurtosis", Rates::shared, true, 3, kurtosis};
const Quantity kSinkRate{"sink rate", "attn/sink_rate", Rates::shared, false, 3, sink_rate};
const Quantity kFirstToken{
    "attention to the first token", "attn/first_token", Rates::shared, false, 3, first_token};
const Quantity kFirstContextRms{
    "context RMS after the first step", "attn/context_rms", Rates::shared, true, 3,
    context_rms_after_first_step};
const Quantity kSensitivity{"lr sensitivity", "val/loss",  Rates::shared, false, 4,
                            nullptr,          sensitivity, true};
const Quantity kUnstableSteps{"steps in spikes or after divergence %",
                              "spike/score_loss",
                              Rates::shared,
                              false,
                              2,
                              nullptr,
                              unstable_steps};

bool logged_metric(const RunRecord& run, const std::string& metric) {
  return std::any_of(run.metrics.columns.begin(), run.metrics.columns.end(),
                     [&](const auto& column) { return names_metric(column.first, metric); });
}

}  // namespace difftape::study
