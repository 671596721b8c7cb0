#include "train/app/replay/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "core/gemm_backend.h"
#include "core/parallel.h"
#include "core/platform.h"
#include "train/app/replay/recorded_run.h"
#include "train/run/loop/logged_step.h"
#include "train/run/loop/state_digest.h"
#include "train/run/records/metric_registry.h"
#include "train/run/records/run_files.h"
#include "train/system/text_table.h"

namespace difftape::app {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Digests = std::map<Index, run::StateDigest>;

/// What a run left behind.
struct Recorded {
  RecordedRun run;
  Digests digests;
  std::map<Index, fs::path> checkpoints;
  /// Steps that were the last one before the run was made longer. What is measured at a last step
  /// alone was measured there.
  std::set<Index> once_last;
};

/// A number of threads for as long as it lives.
class UseThreads {
 public:
  explicit UseThreads(int count) : before_(num_threads()) { set_num_threads(count); }
  ~UseThreads() { set_num_threads(before_); }
  UseThreads(const UseThreads&) = delete;
  UseThreads& operator=(const UseThreads&) = delete;

 private:
  int before_;
};

Recorded open(const fs::path& dir) {
  Recorded found{open_recorded(dir), {}, {}, {}};
  std::error_code ignored;
  if (fs::exists(dir / run::kDigestsFile, ignored))
    found.digests = run::read_digests(dir / run::kDigestsFile);
  for (const auto& entry : fs::directory_iterator(dir / "checkpoints", ignored)) {
    if (const auto step = run::step_of_file(entry.path())) found.checkpoints[*step] = entry.path();
  }
  const Json env = run::read_env(dir);
  for (const Json& each : env.value("continued", Json::array()))
    found.once_last.insert(each.value("steps_before", Index{0}));
  found.once_last.erase(found.run.config.train.steps);  // it still is
  return found;
}

/// The value of a metric as text, of one that was not logged "-".
std::string text_of(const run::MetricValue& value) {
  if (const double* number = std::get_if<double>(&value)) return run::number_text(*number);
  std::string text;
  for (const double each : std::get<std::vector<double>>(value))
    text += (text.empty() ? "[" : ", ") + run::number_text(each);
  return text + "]";
}

bool same(const run::MetricValue& a, const run::MetricValue& b) {
  if (a.index() != b.index()) return false;
  if (const double* number = std::get_if<double>(&a))
    return same_bits(*number, std::get<double>(b));
  return std::ranges::equal(std::get<std::vector<double>>(a), std::get<std::vector<double>>(b),
                            same_bits);
}

/// What was logged of a step but for speeds; a NaN of a column may be one that was logged or none.
std::map<std::string, run::MetricValue> row_of(const run::MetricsTable& table, std::size_t row) {
  std::map<std::string, run::MetricValue> found;
  for (const auto& [name, column] : table.columns) {
    if (!name.starts_with("throughput/")) found.emplace(name, column[row]);
  }
  for (const auto& [name, column] : table.lists) found.emplace(name, column[row]);
  return found;
}

bool is_nothing(const run::MetricValue& value) {
  if (const double* number = std::get_if<double>(&value)) return std::isnan(*number);
  return std::get<std::vector<double>>(value).empty();
}

std::optional<Difference> metric_difference(const Recorded& recorded, Index step,
                                            const run::Metrics& now) {
  const run::MetricsTable& table = recorded.run.metrics;
  const auto at = std::ranges::lower_bound(table.step, static_cast<double>(step));
  if (at == table.step.end() || *at != static_cast<double>(step))
    return Difference{step, "the step", "-", "taken"};
  const bool once_last = recorded.once_last.contains(step);
  auto was = row_of(table, static_cast<std::size_t>(at - table.step.begin()));
  for (const auto& [name, value] : now) {
    const auto found = was.find(name);
    const bool of_validation = name.starts_with("val/") || name.starts_with("task/");
    const bool missing = found == was.end() || (is_nothing(found->second) && !is_nothing(value));
    if (missing && !once_last) return Difference{step, name, "-", text_of(value)};
    if (found == was.end()) continue;
    if (!missing && !(once_last && of_validation) && !same(found->second, value))
      return Difference{step, name, text_of(found->second), text_of(value)};
    was.erase(found);
  }
  for (const auto& [name, value] : was) {
    if (!once_last && !is_nothing(value)) return Difference{step, name, text_of(value), "-"};
  }
  return std::nullopt;
}

std::optional<Difference> tensor_difference(const run::TrainState& state, Index step,
                                            const run::StateDigest& was,
                                            const run::StateDigest& now) {
  if (was == now) return std::nullopt;
  const std::vector<std::string> names = run::state_tensors(state);
  if (was.tensors.size() != names.size()) {
    return Difference{step, "the number of tensors", std::to_string(was.tensors.size()),
                      std::to_string(names.size())};
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (was.tensors[i] != now.tensors[i])
      return Difference{step, names[i], was.tensors[i], now.tensors[i]};
  }
  return Difference{step, "the state", was.state, now.state};
}

/// A step was taken: the first thing that is not as recorded, or, where tensors were not recorded,
/// as in `first`, which the first pass fills.
std::optional<Difference> compare(const Recorded& recorded, const run::TrainState& state,
                                  const run::Step& step, Digests& first, std::string& digest) {
  const Index number = step.step;
  const run::StateDigest now = digest_of(state);
  digest = now.state;
  const auto logged = recorded.digests.find(number);
  const run::StateDigest& was =
      logged != recorded.digests.end() ? logged->second : first.emplace(number, now).first->second;
  if (auto found = tensor_difference(state, number, was, now)) return found;
  if (const auto file = recorded.checkpoints.find(number); file != recorded.checkpoints.end()) {
    const run::StateDigest kept = digest_of(run::Checkpoint(file->second), state);
    if (auto found = tensor_difference(state, number, kept, now)) return found;
  }
  return metric_difference(recorded, number, metrics_of(state, step));
}

/// Gradient norms before the checkpoint, which diagnostics measure the growth of.
void restore_grad_norms(const RecordedRun& run, run::TrainState& state) {
  for (Index step = 1; step <= state.step; ++step) {
    state.grad_norms[static_cast<std::size_t>(step - 1)] =
        run.logged(run::metric("optim/grad_norm"), step);
  }
}

VerifyPass train_again(const Recorded& recorded, Index from, Digests& first, std::string& origin) {
  const RestoredState restored = restore_to_step(recorded.run, from);
  run::TrainState& state = *restored.state;
  restore_grad_norms(recorded.run, state);
  origin = restored.origin;
  VerifyPass pass{num_threads(), 0, "", std::nullopt};
  while (state.step < recorded.run.last_step() && !pass.difference) {
    const run::Step step = take_logged_step(state);
    pass.steps += 1;
    pass.difference = compare(recorded, state, step, first, pass.digest);
    if (step.diverged) break;
  }
  if (!pass.difference && state.step < recorded.run.last_step())
    pass.difference = Difference{state.step, "the end", "-", "diverged"};
  return pass;
}

/// What computed the run, if something else computes now; empty if it is the same.
std::string other_engine(const fs::path& dir, Engine engine) {
  const EngineScope scope(engine);
  const Json build = run::read_env(dir).value("build", Json::object());
  const auto word = [&](const char* key) { return build.value(key, std::string()); };
  const auto text = [](const std::string& gemm, const std::string& bf16, const std::string& vectors,
                       const std::string& commit) {
    return fmt::format("products by {}, bfloat16 by {}, {}, commit {}", gemm,
                       bf16.empty() ? "nothing" : bf16, vectors, commit);
  };
  const BuildInfo info = build_info();
  const std::string was =
      text(word("gemm_backend"), word("bf16_backend"), word("vectors"), word("commit"));
  return was == text(gemm_backend(), bf16_backend_name(), info.vectors, info.commit) ? "" : was;
}

}  // namespace

bool Verification::equal() const {
  return std::ranges::none_of(passes,
                              [](const VerifyPass& pass) { return pass.difference.has_value(); });
}

Verification verify_run(const fs::path& dir, const VerifyRequest& request) {
  const Recorded recorded = open(dir);
  if (request.from < 0 || request.from >= recorded.run.last_step()) {
    throw UsageError(fmt::format("--from {}: {} has steps after 0 to {}", request.from,
                                 dir.string(), recorded.run.last_step() - 1));
  }
  std::vector<Index> threads = request.threads;
  if (threads.empty()) threads.push_back(num_threads());
  Verification found{dir, "", 0, 0, other_engine(dir, recorded.run.config.train.gemm), {}};
  found.digests = static_cast<Index>(recorded.digests.size());
  found.checkpoints = std::ranges::count_if(recorded.checkpoints, [&](const auto& file) {
    return file.first > request.from && file.first <= recorded.run.last_step();
  });
  Digests first;
  for (const Index count : threads) {
    if (count < 1 || count > 1024)
      throw UsageError(fmt::format("--threads {}: need numbers from 1 to 1024", count));
  }
  for (const Index count : threads) {
    request.say(fmt::format("training up to step {} again with {} thread{}",
                            recorded.run.last_step(), count, count == 1 ? "" : "s"));
    const UseThreads use(static_cast<int>(count));
    found.passes.push_back(train_again(recorded, request.from, first, found.origin));
  }
  return found;
}

std::string to_text(const Verification& found) {
  std::string text = fmt::format(
      "{}: trained again from {}; compared with the metrics of every step, {} of digests, {} "
      "checkpoint{}\n",
      found.dir.string(), found.origin, found.digests, found.checkpoints,
      found.checkpoints == 1 ? "" : "s");
  system::Table table{
      {{"", "threads"}, {"", "steps"}, {"", "digest of the state", true}, {"", "result", true}},
      {}};
  for (const VerifyPass& pass : found.passes) {
    const auto& other = pass.difference;
    table.rows.push_back({std::to_string(pass.threads), std::to_string(pass.steps), pass.digest,
                          other ? fmt::format("step {}: {} is {}, was {}", other->step, other->what,
                                              other->now, other->recorded)
                                : "equal"});
  }
  text += to_text(table);
  if (found.equal()) return text + "equal bit for bit\n";
  if (!found.other_engine.empty())
    text += fmt::format("the run was computed otherwise: {}\n", found.other_engine);
  return text + "not equal\n";
}

}  // namespace difftape::app
