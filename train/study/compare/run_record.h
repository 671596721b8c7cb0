#pragma once
// A run as a study sees it, read back from its directory or from its row of an index (run_index.h).

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

/// Appends a value unless it is there. Returns its position.
template <class T>
std::size_t add_once(std::vector<T>& values, const T& value) {
  const auto found = std::ranges::find(values, value);
  const auto at = static_cast<std::size_t>(found - values.begin());
  if (found == values.end()) values.push_back(value);
  return at;
}

/// A run directory in memory, and the numbers by which it is compared.
struct RunRecord : run::RunDir {
  run::MetricsTable metrics;
  std::string name;        ///< run.name, or the name of the directory where it is empty
  std::string arm;         ///< run.arm, or the name where it is empty
  double lr = 0;           ///< optim.lr
  std::uint64_t seed = 0;  ///< run.seed
  /// model.attention; nothing if a row of an index has words that this program does not know.
  std::optional<AttentionConfig> attention;
  std::vector<double> numbers;  ///< one per quantity, in the order of quantities()
  /// Metrics of quantities that the run logged, with or without a number that counts.
  std::set<std::string, std::less<>> logged_metrics;
  double first_loss = kNaN;  ///< train/loss of step 1, the loss at init; NaN if it is not finite
  std::string index;         ///< the file whose row this is, without curves; empty: a directory

  bool finished() const { return status.state == run::RunState::finished; }
  bool diverged() const { return status.state == run::RunState::diverged; }
  /// Returns whether the run has ended. Statistics count such runs only.
  bool complete() const { return run::is_complete(status.state); }
  /// Returns the value of a quantity of one run; NaN if it was not logged or has no number.
  double number(const Quantity& quantity) const;
  double number(std::string_view quantity_name) const;
  bool logged(const Quantity& quantity) const;
  /// Returns the validation loss after the last step in groups of held-out documents, which are the
  /// same in all runs on the same data; empty lists if the last line of its metrics has none.
  run::GroupLosses group_losses() const;
  /// Returns the known keys of the configuration with their values as YAML; a row of an index has
  /// those that decide its numbers.
  run::FlatConfig values() const;
  /// Returns one of them without quotes; empty if there is no such key.
  std::string value(const std::string& key) const;
};

std::vector<std::string> differing_keys(const RunRecord& a, const RunRecord& b);

/// Returns a record from its parts. Throws DataError that names the run if `data` in its
/// environment is not as difftape writes it.
RunRecord make_record(run::RunDir run, run::MetricsTable metrics);
RunRecord load_run(const std::filesystem::path& dir);

/// "finished", "diverged at step 120 (train/loss)", "running 20/500".
std::string describe_state(const run::RunStatus& status);

}  // namespace difftape::study
