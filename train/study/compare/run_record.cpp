#include "train/study/compare/run_record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <type_traits>

#include "core/error.h"
#include "core/real.h"
#include "train/run/config/reader.h"
#include "train/run/records/metric_registry.h"
#include "train/study/compare/curves.h"
#include "train/study/compare/quantities.h"
#include "train/system/files.h"
#include "train/system/json.h"
#include "train/system/text_table.h"

namespace difftape::study {

namespace {

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
  throw DataError(fmt::format("{}: {} is \"{}\"; need {}", who, key, text,
                              std::is_integral_v<T> ? "an integer" : "a number"));
}

/// What a study reads of "data" is as difftape writes it.
void require_data(const nlohmann::ordered_json& env, const std::string& who) {
  const auto data = env.find("data");
  if (data == env.end() || !data->is_object()) return;
  const auto require = [&](const char* key, bool (nlohmann::ordered_json::*is)() const noexcept) {
    const auto value = data->find(key);
    if (value == data->end() || ((*value).*is)()) return;
    throw DataError(
        fmt::format("{} is damaged: data.{} is {}", who, key, system::json_text(*value)));
  };
  for (const char* key : {"bigram_entropy", "best_loss", "best_accuracy"})
    require(key, &nlohmann::ordered_json::is_number);
  for (const char* key : {"xxh3_128", "val_xxh3_128"})
    require(key, &nlohmann::ordered_json::is_string);
}

/// The rule of a config. Throws DataError for one that no detector takes.
stats::SpikeRule rule_of(const nlohmann::ordered_json& config, const std::string& who) {
  try {
    const std::string word = config.value("log.spike_rule", "olmo2");
    const auto named = from_string<stats::SpikeDefinition>(word);
    if (!named) {
      throw DataError(fmt::format("{}: log.spike_rule is '{}'; need one of {}", who, word,
                                  fmt::join(names<stats::SpikeDefinition>(), ", ")));
    }
    const stats::SpikeRule rule =
        stats::make_spike_rule(*named, number<Index>(config, who, "log.spike_window", "0"),
                               number<double>(config, who, "log.spike_threshold", "0"),
                               number<Index>(config, who, "log.spike_min_history", "0"));
    return stats::SpikeDetector(rule).rule();
  } catch (const ConfigError& error) {
    throw DataError(fmt::format("{}: {}", who, error.what()));
  }
}

/// Read as any configuration is.
std::optional<AttentionConfig> attention_of(const nlohmann::ordered_json& config) {
  std::string text;
  for (const auto& [key, value] : config.items()) {
    if (!key.starts_with("model.attention.")) continue;
    text += fmt::format("{}: {}\n", key, value.get<std::string>());
  }
  try {
    return run::config_from_yaml(text, "env.json").model.attention;
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

/// The loss of the first step.
double loss_of_first_step(const run::MetricsTable& metrics) {
  const auto found = metrics.columns.find(run::metric("train/loss"));
  const bool known = found != metrics.columns.end() && !metrics.step.empty() &&
                     metrics.step.front() == 1 && std::isfinite(found->second[0]);
  return known ? found->second[0] : kNaN;
}

}  // namespace

RunRecord make_record(const std::filesystem::path& dir, run::RunStatus status,
                      nlohmann::ordered_json env, run::MetricsTable metrics) {
  RunRecord run;
  run.dir = dir;
  run.env = std::move(env);
  run.status = std::move(status);
  run.metrics = std::move(metrics);
  const std::string who = (dir / "env.json").string();
  require_data(run.env, who);
  const auto config = run.env.value("config", nlohmann::ordered_json::object());
  run.env["config"] = config;
  run.attention = attention_of(config);
  run.lr = number<double>(config, who, "optim.lr", "");
  run.seed = number<std::uint64_t>(config, who, "run.seed", "");
  rule_of(config, who);
  const std::string name = run.config("run.name"), arm = run.config("run.arm");
  run.name = name.empty() ? dir.filename().string() : name;
  run.arm = arm.empty() ? run.name : arm;
  run.first_loss = loss_of_first_step(run.metrics);
  for (const Quantity& each : quantities()) {
    if (has_metric(run.metrics, each.metric)) run.logged_metrics.insert(each.metric);
    run.numbers.push_back(each.of_run == nullptr ? kNaN : each.of_run(run));
  }
  return run;
}

RunRecord load_run(const std::filesystem::path& dir) {
  run::RunStatus status = run::read_status(dir);
  run::MetricsTable metrics = run::read_metrics(dir / "metrics.jsonl");
  const bool behind = status.state == run::RunState::running ||
                      status.state == run::RunState::killed;  // it is written at checkpoints
  if (behind && !metrics.step.empty()) status.step = static_cast<Index>(metrics.step.back());
  return make_record(dir, std::move(status), run::read_env(dir), std::move(metrics));
}

bool RunRecord::logged(const Quantity& quantity) const {
  return logged_metrics.contains(quantity.metric);
}

run::GroupLosses RunRecord::group_losses() const {
  const auto last = [this](const char* list) {
    const auto found = metrics.lists.find(list);
    const bool logged = found != metrics.lists.end() && !metrics.step.empty();
    return logged ? found->second[metrics.step.size() - 1] : std::vector<double>();
  };
  return {last(run::metric("val/group_loss")), last(run::metric("val/group_tokens"))};
}

double RunRecord::number(const Quantity& quantity) const {
  return numbers.at(static_cast<std::size_t>(&quantity - quantities().data()));
}

double RunRecord::number(std::string_view quantity_name) const {
  return number(quantity(quantity_name));
}

std::string RunRecord::config(const std::string& key) const {
  const auto section = env.find("config");
  std::string value = section == env.end() ? "" : section->value(key, "");
  if (!value.starts_with('"')) return value;
  const auto text = system::json_or_discarded(value);  // in quotes YAML is as JSON
  return text.is_string() ? text.get<std::string>() : value;
}

std::vector<std::string> differing_keys(const RunRecord& a, const RunRecord& b) {
  const auto& others = b.env.at("config");
  std::vector<std::string> keys;
  for (const auto& [key, value] : a.env.at("config").items()) {
    if (others.contains(key) && a.config(key) != b.config(key)) keys.push_back(key);
  }
  return keys;
}

stats::SpikeRule spike_rule(const nlohmann::ordered_json& env) {
  return rule_of(env.at("config"), "env.json");
}

std::string describe_state(const run::RunStatus& status) {
  switch (status.state) {
    case run::RunState::queued:
    case run::RunState::finished:
      return std::string(to_string(status.state));
    case run::RunState::running:
      return fmt::format("running {}/{}", status.step, status.steps);
    case run::RunState::stopped:
      return fmt::format("stopped at step {}", status.step);
    case run::RunState::failed:
      return fmt::format("failed at step {}", status.step);
    case run::RunState::killed:
      return fmt::format("killed after step {}", status.step);
    case run::RunState::diverged:
      break;
  }
  if (!status.diverged) return fmt::format("diverged at step {}", status.step);
  const run::Divergence& where = *status.diverged;
  return fmt::format("diverged at step {} ({}){}{}", where.step, where.quantity,
                     where.op.empty() ? "" : ", first op: ", where.op);
}

}  // namespace difftape::study
