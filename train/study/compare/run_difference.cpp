#include "train/study/compare/run_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string_view>
#include <tuple>
#include <utility>

#include "train/run/records/metric_registry.h"
#include "train/system/json.h"

namespace difftape::study {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSpeeds = "throughput/";

std::optional<std::string> text_of(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  if (found == object.end()) return std::nullopt;
  return found->is_string() ? found->get<std::string>() : system::json_text(*found);
}

/// The keys in which two flat objects differ: in the order of `a`, then those of `b` alone.
std::vector<DifferentValue> different_values(const Json& a, const Json& b) {
  std::vector<DifferentValue> found;
  for (const auto& [key, value] : a.items()) {
    if (!b.contains(key) || b.at(key) != value)
      found.push_back({key, text_of(a, key), text_of(b, key)});
  }
  for (const auto& [key, value] : b.items()) {
    if (!a.contains(key)) found.push_back({key, std::nullopt, text_of(b, key)});
  }
  return found;
}

/// All of env.json but the configuration and the command that asked for it, with paths for keys.
Json environment_of(const RunRecord& run) {
  Json env = run.env, flat = Json::object();
  for (const char* key : {"config", "command"}) env.erase(key);
  if (env.empty()) return flat;  // of which nlohmann makes a null without a path
  const Json paths = env.flatten();
  for (const auto& [path, value] : paths.items()) flat[path.substr(1)] = value;
  return flat;
}

/// The metric of the registry that is logged under a name, or its end if there is none.
const run::Metric* registered(const std::string& name) {
  return std::ranges::find_if(run::kMetrics, [&](const run::Metric& metric) {
    return run::has_parts(metric.per) ? name.starts_with(run::metric_of(metric.name, ""))
                                      : name == metric.name;
  });
}

bool is_of_every_step(const std::string& name) {
  const run::Metric* metric = registered(name);
  return metric != std::end(run::kMetrics) && metric->per == run::Per::run &&
         metric->when == run::When::step;
}

using Found = std::optional<DifferentMetric>;

/// Of a metric that is a number.
Found compared(const std::string& name, double a, double b) {
  const bool a_is_nan = std::isnan(a), b_is_nan = std::isnan(b);
  if (a_is_nan && b_is_nan) return std::nullopt;
  if ((a_is_nan || b_is_nan) && !is_of_every_step(name)) return std::nullopt;
  if (std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b)) return std::nullopt;
  return DifferentMetric{name, 0, a, b};
}

/// Of a list the first item that differs; NaN stands for one that the shorter list lacks. An empty
/// list was not logged.
Found compared(const std::string& name, const std::vector<double>& a,
               const std::vector<double>& b) {
  if (a.empty() || b.empty()) return std::nullopt;
  const auto item = [](const std::vector<double>& list, std::size_t i) {
    return i < list.size() ? list[i] : std::numeric_limits<double>::quiet_NaN();
  };
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const double one = item(a, i), other = item(b, i);
    const bool same = std::bit_cast<std::uint64_t>(one) == std::bit_cast<std::uint64_t>(other) ||
                      (std::isnan(one) && std::isnan(other));
    if (!same) return DifferentMetric{fmt::format("{}[{}]", name, i), 0, one, other};
  }
  return std::nullopt;
}

/// Two runs and the rows of their tables that are of the same step.
class Comparison {
 public:
  Comparison(const run::MetricsTable& a, const run::MetricsTable& b) : steps_(a.step) {
    for (std::size_t i = 0, j = 0; i < a.step.size() && j < b.step.size();) {
      if (a.step[i] == b.step[j]) rows_.emplace_back(i, j);
      const bool next_a = a.step[i] <= b.step[j], next_b = b.step[j] <= a.step[i];
      if (next_a) ++i;
      if (next_b) ++j;
    }
  }

  /// Compares columns of numbers, or of lists.
  template <class Columns>
  void add(const Columns& a, const Columns& b, RunDifference& to) const {
    for (const auto& [name, column] : a) {
      if (name.starts_with(kSpeeds)) continue;
      const auto other = b.find(name);
      if (other == b.end()) {
        to.metrics_of_a.push_back(name);
      } else if (const Found found = first(name, column, other->second)) {
        to.metrics.push_back(*found);
      }
    }
    for (const auto& [name, column] : b) {
      if (!a.contains(name) && !name.starts_with(kSpeeds)) to.metrics_of_b.push_back(name);
    }
  }

  Index common_steps() const { return std::ssize(rows_); }

 private:
  template <class Column>
  Found first(const std::string& name, const Column& a, const Column& b) const {
    for (const auto& [i, j] : rows_) {
      if (Found found = compared(name, a[i], b[j])) {
        found->step = static_cast<Index>(steps_[i]);
        return found;
      }
    }
    return std::nullopt;
  }

  const std::vector<double>& steps_;
  std::vector<std::pair<std::size_t, std::size_t>> rows_;
};

}  // namespace

std::string family_of(const std::string& name) {
  const run::Metric* metric = registered(name);
  const bool is_one = metric == std::end(run::kMetrics) || !run::has_parts(metric->per);
  return is_one ? name : run::metric_of(metric->name, "...");
}

bool RunDifference::same_numbers() const {
  return metrics.empty() && metrics_of_a.empty() && metrics_of_b.empty() && only_in_a == 0 &&
         only_in_b == 0;
}

RunDifference difference(const RunRecord& a, const RunRecord& b) {
  RunDifference found;
  found.config = different_values(a.env.at("config"), b.env.at("config"));
  found.environment = different_values(environment_of(a), environment_of(b));
  const Comparison comparison(a.metrics, b.metrics);
  found.common_steps = comparison.common_steps();
  found.only_in_a = std::ssize(a.metrics.step) - found.common_steps;
  found.only_in_b = std::ssize(b.metrics.step) - found.common_steps;
  comparison.add(a.metrics.columns, b.metrics.columns, found);
  comparison.add(a.metrics.lists, b.metrics.lists, found);
  std::ranges::sort(found.metrics, {}, [](const DifferentMetric& metric) {
    return std::tuple(metric.step, registered(metric.name), metric.name);
  });
  return found;
}

}  // namespace difftape::study
