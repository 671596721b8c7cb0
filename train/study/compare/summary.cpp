#include "train/study/compare/summary.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <type_traits>

#include "core/error.h"
#include "train/stats/descriptive.h"

namespace difftape::study {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// The values of a metric where it was logged, infinities included.
std::vector<double> logged(const run::MetricsTable& metrics, const std::string& name) {
  std::vector<double> values;
  const auto found = metrics.columns.find(name);
  if (found == metrics.columns.end()) return values;
  std::copy_if(found->second.begin(), found->second.end(), std::back_inserter(values),
               [](double value) { return !std::isnan(value); });
  return values;
}

std::span<const double> tail(const std::vector<double>& values, std::size_t count) {
  return std::span(values).last(std::min(count, values.size()));
}

double last(const std::vector<double>& values) { return values.empty() ? kNaN : values.back(); }

RunSummary summary_of(std::string name, run::RunStatus status, const run::MetricsTable& metrics) {
  const bool diverged = status.state == run::RunState::diverged;
  const std::vector<double> train = logged(metrics, "train/loss");
  const std::vector<double> grad = logged(metrics, "optim/grad_norm");
  return {
      .name = std::move(name),
      .status = std::move(status),
      .train_loss =
          diverged ? kNaN : stats::mean(tail(train, std::max<std::size_t>(10, train.size() / 20))),
      .val_loss = diverged ? kNaN : last(logged(metrics, "val/loss")),
      .spike_score_loss = last(logged(metrics, "spike/score_loss")),
      .spike_score_grad = last(logged(metrics, "spike/score_grad")),
      .grad_norm_median = stats::quantile(grad, 0.5),
      .grad_norm_p99 = stats::quantile(grad, 0.99),
      .grad_norm_max = stats::quantile(grad, 1),
      .grad_norm_late_variance = stats::variance(tail(grad, (grad.size() + 3) / 4)),
      .tokens_per_sec = stats::quantile(logged(metrics, "throughput/tokens_per_sec"), 0.5)};
}

/// A key of a config as a number; `missing` stands for a key that is not there. `who` is the file.
template <class T>
T number(const nlohmann::ordered_json& config, const std::string& who, const char* key,
         const char* missing) {
  const std::string text = config.value(key, missing);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size() && !text.empty();
  if constexpr (std::is_floating_point_v<T>) {
    if (whole && std::isfinite(value)) return value;
  } else {
    if (whole) return value;
  }
  throw DataError(fmt::format("{}: {} is \"{}\"; need a {}number", who, key, text,
                              std::is_integral_v<T> ? "whole " : ""));
}

/// The rule of a config. Throws DataError for one that no detector takes.
stats::SpikeRule rule_of(const nlohmann::ordered_json& config, const std::string& who) {
  try {
    const std::string word = config.value("log.spike_rule", "olmo2");
    const auto definition = from_string<stats::SpikeDefinition>(word);
    if (!definition) {
      throw DataError(fmt::format("{}: log.spike_rule is '{}'; need one of {}", who, word,
                                  fmt::join(names<stats::SpikeDefinition>(), ", ")));
    }
    const stats::SpikeRule rule =
        stats::make_spike_rule(*definition, number<Index>(config, who, "log.spike_window", "0"),
                               number<double>(config, who, "log.spike_threshold", "0"),
                               number<Index>(config, who, "log.spike_min_history", "0"));
    return stats::SpikeDetector(rule).rule();
  } catch (const ConfigError& error) {
    throw DataError(fmt::format("{}: {}", who, error.what()));
  }
}

}  // namespace

RunRecord make_record(const std::filesystem::path& dir, run::RunStatus status,
                      nlohmann::ordered_json env, run::MetricsTable metrics) {
  RunRecord run{dir, std::move(env), std::move(metrics), {}, {}};
  const std::string in_dir = dir.filename().string(), name = run.config("run.name");
  const std::string who = (dir / "env.json").string();
  const auto config = run.env.value("config", nlohmann::ordered_json::object());
  run.lr = number<double>(config, who, "optim.lr", "");
  run.seed = number<std::uint64_t>(config, who, "run.seed", "");
  rule_of(config, who);
  run.summary = summary_of(name.empty() ? in_dir : name, std::move(status), run.metrics);
  run.arm = run.config("run.arm").empty() ? run.summary.name : run.config("run.arm");
  return run;
}

RunRecord load_run(const std::filesystem::path& dir) {
  run::RunStatus status = run::read_status(dir);
  return make_record(dir, std::move(status), run::read_env(dir),
                     run::read_metrics(dir / "metrics.jsonl"));
}

double RunRecord::loss_at_init() const {
  const auto found = metrics.columns.find("train/loss");
  const bool logged = found != metrics.columns.end() && !metrics.step.empty();
  if (!logged || metrics.step.front() != 1) return kNaN;
  return std::isfinite(found->second.front()) ? found->second.front() : kNaN;
}

std::string RunRecord::config(const std::string& key) const {
  const auto section = env.find("config");
  const std::string value = section == env.end() ? "" : section->value(key, "");
  if (!value.starts_with('"')) return value;
  const auto text = nlohmann::json::parse(value, nullptr, false);  // in quotes YAML is as JSON
  return text.is_string() ? text.get<std::string>() : value;
}

void name_apart(std::vector<RunRecord>& runs) {
  std::map<std::string, int> uses;
  for (const RunRecord& run : runs) uses[run.summary.name] += 1;
  for (RunRecord& run : runs) {
    if (uses[run.summary.name] > 1) run.summary.name = run.dir.string();
  }
}

std::vector<RunRecord> load_runs(std::span<const std::filesystem::path> dirs) {
  std::vector<RunRecord> runs;
  for (const std::filesystem::path& dir : dirs) runs.push_back(load_run(dir));
  name_apart(runs);
  return runs;
}

RunSummary summarize(const std::filesystem::path& dir) { return load_run(dir).summary; }

Curve curve(const run::MetricsTable& metrics, const std::string& name) {
  Curve result;
  const auto found = metrics.columns.find(name);
  if (found == metrics.columns.end()) return result;
  for (std::size_t i = 0; i < metrics.step.size(); ++i) {
    if (!std::isfinite(found->second[i])) continue;
    result.step.push_back(metrics.step[i]);
    result.value.push_back(found->second[i]);
  }
  return result;
}

Curve spikes(const Curve& curve, const stats::SpikeRule& rule) {
  Curve result;
  stats::SpikeDetector detector(rule);
  for (std::size_t i = 0; i < curve.step.size(); ++i) {
    if (!detector.add(curve.value[i])) continue;
    result.step.push_back(curve.step[i]);
    result.value.push_back(curve.value[i]);
  }
  return result;
}

stats::SpikeRule spike_rule(const nlohmann::ordered_json& env) {
  return rule_of(env.at("config"), "env.json");
}

Curve decimate(const Curve& curve, std::size_t points) {
  const std::size_t size = curve.step.size(), buckets = points / 2;
  if (size <= points || buckets == 0) return curve;
  std::vector<std::size_t> kept = {0};
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
    const auto begin = curve.value.begin() + static_cast<std::ptrdiff_t>(bucket * size / buckets);
    const auto end =
        curve.value.begin() + static_cast<std::ptrdiff_t>((bucket + 1) * size / buckets);
    const auto [low, high] = std::minmax_element(begin, end);
    kept.push_back(static_cast<std::size_t>(std::min(low, high) - curve.value.begin()));
    kept.push_back(static_cast<std::size_t>(std::max(low, high) - curve.value.begin()));
  }
  kept.push_back(size - 1);
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  Curve result;
  for (const std::size_t i : kept) {
    result.step.push_back(curve.step[i]);
    result.value.push_back(curve.value[i]);
  }
  return result;
}

}  // namespace difftape::study
