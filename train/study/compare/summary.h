#pragma once
// What a finished, stopped or diverged run amounts to, read back from its directory.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "train/run/records/metrics.h"
#include "train/run/records/run_files.h"
#include "train/stats/spikes.h"

namespace difftape::study {

/// The numbers by which runs are compared. NaN: not logged, or no such number.
struct RunSummary {
  std::string name;  ///< run.name
  run::RunStatus status;
  double train_loss;  ///< nats a token, mean of the last 5 % of logged steps, at least 10; NaN if
                      ///< diverged
  double val_loss;    ///< nats a token, the last one; NaN if diverged
  double spike_score_loss, spike_score_grad;  ///< percent of all steps
  double grad_norm_median, grad_norm_p99, grad_norm_max;
  double grad_norm_late_variance;  ///< population variance over the last quarter of logged steps
  double tokens_per_sec;           ///< median
};

/// A run directory in memory.
struct RunRecord {
  std::filesystem::path dir;
  nlohmann::ordered_json env;
  run::MetricsTable metrics;
  RunSummary summary;
  std::string arm;         ///< run.arm, or run.name where that is empty
  double lr = 0;           ///< optim.lr
  std::uint64_t seed = 0;  ///< run.seed

  /// Finished or diverged: nothing more will come. Only such runs are counted in statistics.
  bool complete() const {
    return summary.status.state == run::RunState::finished ||
           summary.status.state == run::RunState::diverged;
  }
  /// The first training loss, nats a token: that of the initial weights. NaN if it is not finite.
  double loss_at_init() const;
  /// A key of the config in env.json, as text; empty if it is not there.
  std::string config(const std::string& key) const;
};

/// A record from its parts. Throws DataError that names `dir` if the config in `env` has no number
/// for optim.lr, no whole one for run.seed, or log.spike_* keys of no rule.
RunRecord make_record(const std::filesystem::path& dir, run::RunStatus status,
                      nlohmann::ordered_json env, run::MetricsTable metrics);
/// Throws MissingInput if `dir` is not a run directory and DataError if a file in it is damaged.
RunRecord load_run(const std::filesystem::path& dir);
/// Calls runs that share a name by their directory instead.
void name_apart(std::vector<RunRecord>& runs);
/// Loads several and names them apart.
std::vector<RunRecord> load_runs(std::span<const std::filesystem::path> dirs);
/// The summary alone. Throws as load_run does.
RunSummary summarize(const std::filesystem::path& dir);

/// A metric of a run where it is finite. No points if it was never logged.
struct Curve {
  std::vector<double> step, value;  ///< same length
};
Curve curve(const run::MetricsTable& metrics, const std::string& name);

/// The points of a curve that are spikes by the rule in the config of the run.
Curve spikes(const Curve& curve, const stats::SpikeRule& rule);
/// The `log.spike_*` keys of the config in env.json. Throws DataError for those of no rule; a
/// record that was loaded has a rule.
stats::SpikeRule spike_rule(const nlohmann::ordered_json& env);

/// At most about `points` points of a curve: its first, its last, and the smallest and the largest
/// of each of points / 2 equal stretches, so that no peak is lost.
Curve decimate(const Curve& curve, std::size_t points);

}  // namespace difftape::study
