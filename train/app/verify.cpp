#include "train/app/verify.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/gemm_backend.h"
#include "core/parallel.h"
#include "core/platform.h"
#include "train/run/checkpoint/checkpoint.h"
#include "train/run/loop/train_state.h"
#include "train/run/loop/trainer.h"
#include "train/run/records/metrics.h"
#include "train/run/records/metrics_difference.h"
#include "train/run/records/run_files.h"
#include "train/system/files.h"
#include "train/system/number.h"
#include "train/system/text_table.h"

namespace difftape::app {
namespace {

namespace fs = std::filesystem;

/// Sets the number of threads during its lifetime.
class UseThreads {
 public:
  explicit UseThreads(int count) : before_(num_threads()) { set_num_threads(count); }
  ~UseThreads() { set_num_threads(before_); }
  UseThreads(const UseThreads&) = delete;
  UseThreads& operator=(const UseThreads&) = delete;

 private:
  int before_;
};

/// A directory that is removed with its contents.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(std::string_view purpose)
      : path_(fs::temp_directory_path() / fmt::format("difftape-{}-{}", purpose, getpid())) {}
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// Returns the first difference between two sets of metrics, or nothing.
std::string metric_difference(const run::MetricsTable& recorded, const run::MetricsTable& now) {
  const run::MetricsDifference found = difference(recorded, now);
  if (!found.metrics.empty()) {
    const run::DifferentMetric& first = found.metrics.front();
    return fmt::format("step {}: {} is {}, was {}", first.step, first.name,
                       system::json_number(first.b), system::json_number(first.a));
  }
  if (!found.metrics_of_a.empty())
    return fmt::format("{} was logged, and is not", found.metrics_of_a.front());
  if (!found.metrics_of_b.empty())
    return fmt::format("{} is logged, and was not", found.metrics_of_b.front());
  if (found.only_in_a > 0)
    return fmt::format("{} steps of the run were not repeated", found.only_in_a);
  return "";
}

/// Returns true if two checkpoints have the same bytes. A run that grew in steps keeps checkpoints
/// with the number that it had before; they are compared as a run with `config` would write them.
bool equal(const fs::path& recorded, const fs::path& now, const run::Config& config) {
  const std::string bytes = system::read_text(now);
  if (system::read_text(recorded) == bytes) return true;
  if (run::Checkpoint(recorded).meta().config_yaml == run::Checkpoint(now).meta().config_yaml)
    return false;
  run::TrainState state(config);
  state.restore(recorded);
  const TemporaryFolder saved("verify-checkpoint");
  state.save(saved.path());
  return system::read_text(saved.path() / now.filename()) == bytes;
}

std::string train_again(const run::RunDir& run, const run::MetricsTable& recorded, Index& files) {
  const TemporaryFolder again("verify");
  static_cast<void>(run::train(run.config, {.out = again.path()}));
  std::string found =
      metric_difference(recorded, run::read_metrics(again.path() / "metrics.jsonl"));
  files = 0;
  for (const auto& [step, file] : run::checkpoints_in(run.checkpoints())) {
    const fs::path other = again.path() / "checkpoints" / file.filename();
    if (!system::is_there(other)) continue;
    ++files;
    if (found.empty() && !equal(file, other, run.config))
      found = fmt::format("step {}: the bytes of {} differ", step,
                          (fs::path("checkpoints") / file.filename()).string());
  }
  return found;
}

/// Returns the engine and build of the run if they differ from the current ones, or nothing.
std::string other_engine(const run::RunDir& run) {
  const EngineScope scope(run.config.train.gemm);
  const auto build = run.env.value("build", nlohmann::ordered_json::object());
  const auto text = [](const std::string& gemm, const std::string& bf16, const std::string& vectors,
                       const std::string& commit) {
    return fmt::format("GEMM by {}, bfloat16 by {}, {}, commit {}", gemm,
                       bf16.empty() ? "nothing" : bf16, vectors, commit);
  };
  const auto word = [&](const char* key) { return build.value(key, std::string()); };
  const BuildInfo info = build_info();
  const std::string was =
      text(word("gemm_backend"), word("bf16_backend"), word("vectors"), word("commit"));
  return was == text(gemm_backend(), bf16_backend_name(), info.vectors, info.commit) ? "" : was;
}

}  // namespace

bool Verification::equal() const {
  return std::ranges::all_of(passes,
                             [](const VerifyPass& pass) { return pass.difference.empty(); });
}

Verification verify_run(const fs::path& dir, std::vector<Index> threads,
                        const std::function<void(const std::string&)>& say) {
  const run::RunDir run = run::open_run(dir);
  run::require_precision(
      dir, run.env.value(nlohmann::ordered_json::json_pointer("/build/precision"), kRealName),
      "verify");
  if (threads.empty()) threads.push_back(num_threads());
  for (const Index count : threads)
    throw_if<UsageError>(count < 1 || count > 1024, "--threads {}: must be from 1 to 1024", count);
  const run::MetricsTable recorded = run::read_metrics(run.metrics_file());
  Verification found{dir, std::ssize(recorded.step), 0, other_engine(run), {}};
  for (const Index count : threads) {
    if (say)
      say(fmt::format("training {} again with {} thread{}", dir.string(), count,
                      count == 1 ? "" : "s"));
    const UseThreads use(static_cast<int>(count));
    found.passes.push_back(
        {static_cast<int>(count), train_again(run, recorded, found.checkpoints)});
  }
  return found;
}

std::string to_text(const Verification& found) {
  std::string text = fmt::format("{}: compared the metrics of {} steps and {} checkpoint{}\n",
                                 system::printable(found.dir.string()), found.steps,
                                 found.checkpoints, found.checkpoints == 1 ? "" : "s");
  system::Table table{{{"", "threads"}, {"", "result", true}}, {}};
  for (const VerifyPass& pass : found.passes)
    table.rows.push_back(
        {std::to_string(pass.threads), pass.difference.empty() ? "equal" : pass.difference});
  text += to_text(table);
  if (found.equal()) return text + "bitwise equal\n";
  if (!found.other_engine.empty())
    text += fmt::format("the run was computed with: {}\n", found.other_engine);
  return text + "not equal\n";
}

}  // namespace difftape::app
