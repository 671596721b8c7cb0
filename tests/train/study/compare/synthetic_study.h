#pragma once
// Synthetic runs in memory: short metrics, any configuration, any state.

#include "tests/support/test.h"
#include "train/run/config/reader.h"
#include "train/study/compare/row.h"

namespace difftape::test {

struct Result {
  std::string arm = "softmax";
  std::map<std::string, std::string> attention = {};  ///< keys below model.attention
  double lr = 1e-3;
  int seed = 1;
  double loss = 2.3;  ///< final validation loss
  run::RunState state = run::RunState::finished;
  Index diverged_at = 12;                    ///< if it did
  double late_growth = 0;                    ///< exponent of the gradient norm over the second half
  std::map<std::string, double> last = {};   ///< more metrics of the last step
  std::map<std::string, double> first = {};  ///< more metrics of step 1
  std::map<std::string, std::string> config = {};
};

constexpr Index kSteps = 20;
constexpr double kInitialLoss = 5.5;

inline study::LoadedRun loaded_run(const Result& result) {
  run::Config config;
  config.run.name = config.run.arm = result.arm;
  config.run.seed = static_cast<std::uint64_t>(result.seed);
  config.model.attention.kind = "softmax";
  config.model.d_ff = 344;
  config.model.vocab_size = 256;
  config.data.seq_len = 256;
  config.train.steps = kSteps;
  config.optim.max_grad_norm = 1;
  const auto set_key = [&](const std::string& key, const std::string& value) {
    run::set_value(config, key, value);
  };
  set_key("optim.lr", fmt::format("{:g}", result.lr));
  for (const auto& [key, value] : result.attention) set_key("model.attention." + key, value);
  for (const auto& [key, value] : result.config) set_key(key, value);
  const bool diverged = result.state == run::RunState::diverged;
  const Index done = diverged                                  ? result.diverged_at
                     : result.state == run::RunState::finished ? kSteps
                                                               : kSteps / 2;
  run::MetricsTable metrics;
  const auto set = [&](const std::string& name, double value) {
    metrics.columns[name].set(metrics.step.size() - 1, value);
  };
  for (Index step = 1; step <= done; ++step) {
    const auto t = static_cast<double>(step);
    metrics.step.push_back(t);
    const double train = step == 1 ? kInitialLoss : result.loss + 2 / t;
    set("train/loss", diverged && step == done ? kNaN : train);
    set("optim/grad_norm",
        (1 + 0.1 * (step % 3)) * std::pow(std::max(t, 10.0), result.late_growth));
    set("throughput/tokens_per_sec", 40000);
    if (step == 1) {
      for (const auto& [name, value] : result.first) set(name, value);
    }
    if (step == done && !diverged) {
      set("val/loss", result.loss);
      for (const auto& [name, value] : result.last) set(name, value);
    }
  }
  run::RunStatus status{.state = result.state, .step = done, .steps = kSteps, .parameters = 820224};
  if (diverged) status.diverged = run::Divergence{done, "train/loss", ""};
  const std::string dir = fmt::format("runs/{}-lr{:g}-seed{}", result.arm, result.lr, result.seed);
  return {{dir, status, {{"command", {"difftape"}}}, config}, metrics};
}

/// Returns the row of a run in memory, with its metrics.
inline study::Row row_of(const study::LoadedRun& run) {
  study::Row row = reduced(run);
  row.loaded = std::make_shared<const study::LoadedRun>(run);
  return row;
}

inline study::Row record(const Result& result) { return row_of(loaded_run(result)); }

/// Returns the metrics of a row for changes. They are no longer shared with copies of the row.
inline run::MetricsTable& metrics_of(study::Row& row) {
  const auto copy = std::make_shared<study::LoadedRun>(row.curves());
  row.loaded = copy;
  return copy->metrics;
}

inline std::vector<study::Row> records(const std::vector<Result>& results) {
  std::vector<study::Row> runs;
  for (const Result& result : results) runs.push_back(record(result));
  return runs;
}

inline std::vector<const study::Row*> pointers(const std::vector<study::Row>& runs) {
  std::vector<const study::Row*> result;
  for (const study::Row& run : runs) result.push_back(&run);
  return result;
}

}  // namespace difftape::test

namespace difftape::study {

using test::loaded_run;
using test::metrics_of;
using test::pointers;
using test::record;
using test::records;
using test::Result;
using test::row_of;

}  // namespace difftape::study
