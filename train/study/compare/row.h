#pragma once
// A run of a study as one row: strings and numbers, from its directory or from a line of runs.csv
// (runs_csv.h).

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/real.h"
#include "train/run/config/config.h"
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

/// A run directory with its metrics.
struct LoadedRun : run::RunDir {
  run::MetricsTable metrics = {};

  bool finished() const { return status.state == run::RunState::finished; }
  bool diverged() const { return status.state == run::RunState::diverged; }
};

/// Strings by name.
using Strings = std::map<std::string, std::string, std::less<>>;

struct Row {
  std::filesystem::path dir;  ///< the run directory, which need not exist for a line of runs.csv
  std::string file = {};      ///< the runs.csv of a line; empty for a directory
  std::string name;           ///< run.name, or the name of the directory if it is empty
  std::string arm;            ///< run.arm, or the name if it is empty
  double lr = 0;              ///< optim.lr
  std::uint64_t seed = 0;     ///< run.seed
  run::RunStatus status = {};
  Strings config = {};  ///< keys of the configuration without the section `run` and without paths
  Strings facts = {};   ///< fact_columns(): digests, build, machine; missing ones are absent
  std::vector<double> numbers = {};            ///< one per quantity, in the order of quantities()
  std::map<std::string, double> domains = {};  ///< val_loss by domain of the text
  /// Metrics of quantities that the run logged, even if all values are NaN.
  std::set<std::string, std::less<>> logged_metrics = {};
  /// The run directory in full, once curves() has read it.
  mutable std::shared_ptr<const LoadedRun> loaded = nullptr;

  bool finished() const { return status.state == run::RunState::finished; }
  bool diverged() const { return status.state == run::RunState::diverged; }
  /// Returns whether the run finished or diverged. Statistics count such runs only.
  bool complete() const { return run::is_complete(status.state); }
  /// Returns the value of a quantity of one run; NaN if it was not logged or has no number.
  double number(const Quantity& quantity) const;
  double number(std::string_view quantity_name) const;
  bool logged(const Quantity& quantity) const;
  /// Returns the value of a key of the configuration without quotes: its default if the row does
  /// not have it, and empty if there is no such key.
  std::string value(const std::string& key) const;
  /// Returns a fact; empty if it is missing.
  std::string fact(std::string_view column) const;
  bool reads_text() const { return value("data.type") == to_string(run::DataKind::text); }
  /// Reads the run directory at the first call. A line of runs.csv has no metrics.
  const LoadedRun& curves() const;
};

/// Names of the facts: "data", "commit", ...
std::vector<std::string> fact_columns();

/// Returns the keys in which two runs differ. Numbers compare as numbers. A key of another version
/// counts if both runs have it.
std::vector<std::string> differing_keys(const Row& a, const Row& b);

/// Returns a run that has only its configuration, as queued in a sweep.
Row planned_row(const run::Config& config, const std::filesystem::path& dir);
/// Reduces a run to its row. Throws DataError that names the run if `data` in its environment is
/// damaged.
Row reduced(const LoadedRun& run);
LoadedRun load_directory(const std::filesystem::path& dir);
Row load_run(const std::filesystem::path& dir);

/// Returns "finished", "diverged at step 120 (train/loss)", "running 20/500".
std::string describe_state(const run::RunStatus& status);

}  // namespace difftape::study
