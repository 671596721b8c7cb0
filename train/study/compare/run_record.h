#pragma once
// A run for comparison, read from its directory or from its row of an index (run_index.h).

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/real.h"
#include "layers/attention/kinds.h"
#include "train/run/config/writer.h"
#include "train/run/records/metrics.h"
#include "train/run/records/run_files.h"

namespace difftape::study {

struct Quantity;

/// Returns f of each element.
template <class Range, class F>
auto mapped(const Range& range, F f) {
  std::vector<std::decay_t<decltype(std::invoke(f, *std::begin(range)))>> results;
  for (const auto& each : range) results.push_back(std::invoke(f, each));
  return results;
}

/// Appends a value unless it is present. Returns its position.
template <class T>
std::size_t add_once(std::vector<T>& values, const T& value) {
  const auto found = std::ranges::find(values, value);
  const auto at = static_cast<std::size_t>(found - values.begin());
  if (found == values.end()) values.push_back(value);
  return at;
}

/// A run directory in memory, with its values of all quantities.
struct RunRecord : run::RunDir {
  run::MetricsTable metrics;
  std::string name;        ///< run.name, or the name of the directory if it is empty
  std::string arm;         ///< run.arm, or the name if it is empty
  double lr = 0;           ///< optim.lr
  std::uint64_t seed = 0;  ///< run.seed
  /// model.attention; nothing if a row of an index has values that this version does not know.
  std::optional<AttentionConfig> attention;
  std::vector<double> numbers;  ///< one per quantity, in the order of quantities()
  /// Metrics of quantities that the run logged, even if all values are NaN.
  std::set<std::string, std::less<>> logged_metrics;
  std::string index;         ///< the index file of a row without curves; empty for a directory

  bool finished() const { return status.state == run::RunState::finished; }
  bool diverged() const { return status.state == run::RunState::diverged; }
  /// Returns whether the run finished or diverged. Statistics count such runs only.
  bool complete() const { return run::is_complete(status.state); }
  /// Returns the value of a quantity of one run; NaN if it was not logged or has no number.
  double number(const Quantity& quantity) const;
  double number(std::string_view quantity_name) const;
  bool logged(const Quantity& quantity) const;
  /// Returns the known keys of the configuration with their values as YAML; for a row of an index,
  /// the keys that determine its numbers.
  run::FlatConfig values() const;
  /// Returns the value of a key without quotes; empty if there is no such key.
  std::string value(const std::string& key) const;
};

std::vector<std::string> differing_keys(const RunRecord& a, const RunRecord& b);

/// Makes a record from its parts. Throws DataError that names the run if `data` in its environment
/// is damaged.
RunRecord make_record(run::RunDir run, run::MetricsTable metrics);
RunRecord load_run(const std::filesystem::path& dir);

/// Returns "finished", "diverged at step 120 (train/loss)", "running 20/500".
std::string describe_state(const run::RunStatus& status);

}  // namespace difftape::study
