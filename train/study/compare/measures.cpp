#include "train/study/compare/measures.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/real.h"
#include "train/run/records/metric_registry.h"
#include "train/stats/lr_optimum.h"
#include "train/study/compare/row.h"

namespace difftape::study {

namespace {

/// Returns whether `name` is `metric` or `metric` in a layer, "metric/3".
bool names_metric(const std::string& name, const std::string& metric) {
  if (!name.starts_with(metric)) return false;
  const std::string rest = name.substr(metric.size());
  return rest.empty() || (rest.size() > 1 && rest.front() == '/' &&
                          rest.find_first_not_of("0123456789", 1) == rest.npos);
}

}  // namespace

Series logged(const run::MetricsTable& metrics, const std::string& name) {
  Series series;
  const auto found = metrics.columns.find(name);
  if (found == metrics.columns.end()) return series;
  const auto& column = found->second;
  for (std::size_t i = 0; i < column.values().size(); ++i) {
    if (std::isnan(column.values()[i])) continue;
    series.step.push_back(metrics.step[column.row(i)]);
    series.value.push_back(column.values()[i]);
  }
  return series;
}

Series curve(const run::MetricsTable& metrics, const std::string& name) {
  return stats::finite(logged(metrics, name));
}

std::vector<Series> layers_of(const run::MetricsTable& metrics, const std::string& name) {
  std::vector<Series> layers;
  for (auto column = metrics.columns.lower_bound(name);
       column != metrics.columns.end() && column->first.starts_with(name); ++column) {
    if (!names_metric(column->first, name)) continue;
    if (Series layer = logged(metrics, column->first); !layer.step.empty())
      layers.push_back(std::move(layer));
  }
  return layers;
}

bool has_metric(const run::MetricsTable& metrics, const std::string& name) {
  return std::ranges::any_of(metrics.columns,
                             [&](const auto& each) { return names_metric(each.first, name); });
}

}  // namespace difftape::study

namespace difftape::study::measures {

using run::metric;

namespace {

constexpr std::size_t kFewestSteps = 50;

/// Returns the last step of the first 10 %, after which spikes count.
double first_scored(const LoadedRun& run) { return 0.1 * static_cast<double>(run.status.steps); }

double quantile(const LoadedRun& run, const char* name, double q) {
  return stats::quantile(logged(run.metrics, name).value, q);
}

std::vector<double> last_layers(const LoadedRun& run, const char* name) {
  const std::vector<Series> layers = layers_of(run.metrics, name);
  double last = 0;
  for (const Series& layer : layers) last = std::max(last, layer.step.back());
  std::vector<double> values;
  for (const Series& layer : layers) {
    if (layer.step.back() == last) values.push_back(layer.value.back());
  }
  return values;
}

Series between(const Series& all, double after, double last) {
  const auto begin = std::ranges::upper_bound(all.step, after) - all.step.begin(),
             end = std::max(begin, std::ranges::upper_bound(all.step, last) - all.step.begin());
  return {{all.step.begin() + begin, all.step.begin() + end},
          {all.value.begin() + begin, all.value.begin() + end}};
}

/// Returns a metric over the second half of the steps up to the last one with the highest learning
/// rate; empty if fewer than `fewest` points are left.
Series late_before_decay(const LoadedRun& run, const char* name, std::size_t fewest) {
  const Series rates = logged(run.metrics, metric("optim/lr"));
  const double peak = stats::quantile(rates.value, 1);
  double last = 0;
  for (std::size_t i = 0; i < rates.step.size(); ++i) {
    if (rates.value[i] == peak) last = rates.step[i];
  }
  const Series late =
      between(curve(run.metrics, name), static_cast<double>(run.status.steps) / 2, last);
  return late.step.size() < fewest ? Series{} : late;
}

}  // namespace

double median(const LoadedRun& run, const char* name) { return quantile(run, name, 0.5); }
double p99(const LoadedRun& run, const char* name) { return quantile(run, name, 0.99); }
double largest(const LoadedRun& run, const char* name) { return quantile(run, name, 1); }

double largest_of_layers(const LoadedRun& run, const char* name) {
  return stats::quantile(last_layers(run, name), 1);
}

double smallest_of_layers(const LoadedRun& run, const char* name) {
  return stats::quantile(last_layers(run, name), 0);
}

double largest_of_run(const LoadedRun& run, const char* name) {
  std::vector<double> largest;
  for (const Series& layer : layers_of(run.metrics, name))
    largest.push_back(stats::quantile(layer.value, 1));
  return stats::quantile(largest, 1);
}

double mean_of_layers(const LoadedRun& run, const char* name) {
  return stats::mean(last_layers(run, name));
}

double train_loss(const LoadedRun& run, const char* name) {
  const std::vector<double> losses = logged(run.metrics, name).value;
  const std::size_t count = std::max<std::size_t>(10, losses.size() / 20);
  if (run.diverged()) return kNaN;
  return stats::mean(std::span(losses).last(std::min(count, losses.size())));
}

double last_validation(const LoadedRun& run, const char* name) {
  const std::vector<double> losses = logged(run.metrics, name).value;
  return run.diverged() || losses.empty() ? kNaN : losses.back();
}

double final_loss(const LoadedRun& run, const char* name) {
  const double final = last_validation(run, name);
  if (run.finished() && std::isnan(final)) return kNaN;
  return stats::capped_loss(final, std::log(static_cast<double>(run.config.model.vocab_size)));
}

double diverged(const LoadedRun& run, const char*) {
  if (run.metrics.step.empty()) return kNaN;
  return run.diverged() ? 1 : 0;
}

stats::Series training_clock(const LoadedRun& run) {
  const Series speed = curve(run.metrics, metric("throughput/tokens_per_sec"));
  Series clock;
  double seconds = 0, before = 0;
  for (std::size_t i = 0; i < speed.step.size(); ++i) {
    const double tokens =
        (speed.step[i] - before) * static_cast<double>(run.status.tokens_per_step);
    if (speed.value[i] > 0) seconds += tokens / speed.value[i];
    before = speed.step[i];
    clock.step.push_back(before);
    clock.value.push_back(seconds);
  }
  return clock;
}

double training_seconds(const LoadedRun& run, const char*) {
  const Series clock = training_clock(run);
  return clock.value.empty() ? kNaN : clock.value.back();
}

double mean_of_layers_at_first_step(const LoadedRun& run, const char* name) {
  std::vector<double> first;
  for (const Series& layer : layers_of(run.metrics, name)) {
    if (layer.step.front() == 1) first.push_back(layer.value.front());
  }
  return stats::mean(first);
}

Series counted_spikes(const LoadedRun& run, const char* name) {
  const auto holds = name == std::string_view(metric("optim/grad_norm"))
                         ? stats::SpikeSeries::grad_norm
                         : stats::SpikeSeries::loss;
  const Series all = logged(run.metrics, name);
  Series found;
  for (const std::size_t i : stats::spikes_of(all.value, holds)) {
    if (all.step[i] <= first_scored(run)) continue;
    found.step.push_back(all.step[i]);
    found.value.push_back(all.value[i]);
  }
  return found;
}

double spike_fraction(const LoadedRun& run, const char* name) {
  const std::vector<double> steps = logged(run.metrics, name).step;
  const Index after = std::ranges::upper_bound(steps, first_scored(run)) - steps.begin();
  const Index scored = std::ssize(steps) - std::max(after, stats::SpikeDetector::kMinHistory);
  const Index counted = std::ssize(counted_spikes(run, name).step);
  return scored > 0 ? static_cast<double>(counted) / static_cast<double>(scored) : kNaN;
}

double spike_count(const LoadedRun& run, const char* name) {
  return spike_fraction(run, name) * (static_cast<double>(run.status.steps) - first_scored(run));
}

double spike_score(const LoadedRun& run, const char* name) {
  return stats::spike_score(logged(run.metrics, name).value);
}

double tail(const LoadedRun& run, const char* name) {
  const std::vector<double> values =
      between(curve(run.metrics, name), first_scored(run), kInfinity).value;
  return stats::quantile(values, 0.99) / stats::quantile(values, 0.5);
}

double late_growth(const LoadedRun& run, const char* name) {
  const Series late = late_before_decay(run, name, kFewestSteps);
  return stats::growth_exponent(late.step, late.value);
}

double late_variation(const LoadedRun& run, const char* name) {
  return stats::variation(late_before_decay(run, name, kFewestSteps).value);
}

double loss_slope(const LoadedRun& run, const char* name) {
  constexpr std::size_t kFewestValidations = 4;
  const Series late = late_before_decay(run, name, kFewestValidations);
  std::vector<double> doublings;
  for (const double step : late.step) doublings.push_back(std::log2(step));
  return stats::slope(doublings, late.value);
}

}  // namespace difftape::study::measures
