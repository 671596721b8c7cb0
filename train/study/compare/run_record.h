#pragma once
// A run as a study sees it, read back from its directory or from its row of an index (run_index.h).

#include <filesystem>
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

/// A run directory in memory, and the numbers by which it is compared.
struct RunRecord : run::RunDir {
  run::MetricsTable metrics;
  std::string name;        ///< run.name, or that of the directory where it is empty
  std::string arm;         ///< run.arm, or the name where that is empty
  double lr = 0;           ///< optim.lr
  std::uint64_t seed = 0;  ///< run.seed
  /// model.attention; nothing if a row of an index has words that this program does not know.
  std::optional<AttentionConfig> attention;
  std::vector<double> numbers;  ///< one a quantity, in the order of quantities()
  /// Metrics of quantities that the run logged, with or without a number that counts.
  std::set<std::string, std::less<>> logged_metrics;
  double first_loss = kNaN;  ///< train/loss of step 1; NaN if it is not finite
  std::string index;  ///< the file whose row this is; it has no curves then. Empty: a directory

  bool finished() const { return status.state == run::RunState::finished; }
  bool diverged() const { return status.state == run::RunState::diverged; }
  /// Nothing more will come. Only such runs are counted in statistics.
  bool complete() const { return run::is_complete(status.state); }
  /// What a quantity of one run is for this one; NaN: not logged, or no such number.
  double number(const Quantity& quantity) const;
  double number(std::string_view quantity_name) const;
  bool logged(const Quantity& quantity) const;
  /// The loss at init: the first training loss, nats per token. NaN if it is not finite.
  double initial_loss() const { return first_loss; }
  /// The validation loss after the last step in groups of held-out documents, which are the same in
  /// all runs on the same data. Empty lists if the last line of its metrics has none, as in a run
  /// that is not finished, on a generated task, or of an older program.
  run::GroupLosses group_losses() const;
  /// Returns the keys of the configuration that are known of the run, with their values as YAML: of
  /// a row of an index those that decide its numbers.
  run::FlatConfig values() const;
  /// Returns one of them as text, without quotes; empty if there is no such key.
  std::string value(const std::string& key) const;
};

/// Returns the keys of the configuration that are known of both runs and in which they differ.
std::vector<std::string> differing_keys(const RunRecord& a, const RunRecord& b);

/// Returns a record from its parts. Throws DataError that names the run if `data` in its
/// environment is not as difftape writes it.
RunRecord make_record(run::RunDir run, run::MetricsTable metrics);
/// Throws what run::open_run and read_metrics throw.
RunRecord load_run(const std::filesystem::path& dir);

/// "finished", "diverged at step 120 (train/loss)", "running 20/500".
std::string describe_state(const run::RunStatus& status);

}  // namespace difftape::study
