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
#include "train/run/records/metrics.h"
#include "train/run/records/run_files.h"
#include "train/stats/spikes.h"

namespace difftape::study {

struct Quantity;

/// A run directory in memory, and the numbers by which it is compared. Keys and words of the config
/// in `env` are those of today, whatever they were called when the run was made.
struct RunRecord {
  std::filesystem::path dir;
  nlohmann::ordered_json env;
  run::MetricsTable metrics;
  run::RunStatus status;
  std::string name;        ///< run.name, or that of the directory where it is empty
  std::string arm;         ///< run.arm, or the name where that is empty
  double lr = 0;           ///< optim.lr
  std::uint64_t seed = 0;  ///< run.seed
  /// model.attention; nothing if it has keys or words that this program does not know.
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
  /// A key of the config in env.json, as text; empty if it is not there.
  std::string config(const std::string& key) const;
};

/// The keys of the config that both runs know and in which they differ, in the order of `a`. A key
/// that only one of them knows, as those of older versions, makes no difference.
std::vector<std::string> differing_keys(const RunRecord& a, const RunRecord& b);

/// A record from its parts. Throws DataError that names `dir` if the config in `env` has no number
/// for optim.lr, no whole one for run.seed, or log.spike_* keys of no rule.
RunRecord make_record(const std::filesystem::path& dir, run::RunStatus status,
                      nlohmann::ordered_json env, run::MetricsTable metrics);
/// Throws MissingInput if `dir` is not a run directory and DataError if a file in it is damaged.
RunRecord load_run(const std::filesystem::path& dir);
/// The `log.spike_*` keys of the config in env.json. Throws DataError for those of no rule; a
/// record that was loaded has a rule.
stats::SpikeRule spike_rule(const nlohmann::ordered_json& env);

/// "finished", "diverged at step 120 (train/loss)", "running 20/500".
std::string describe_state(const run::RunStatus& status);

}  // namespace difftape::study
