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
#include "train/app/replay/replay.h"
#include "train/run/loop/step.h"
#include "train/run/records/metric_registry.h"
#include "train/run/records/metrics_difference.h"
#include "train/system/number.h"
#include "train/system/text_table.h"

namespace difftape::app {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using run::MetricsTable;

/// Files and metrics of a run after the step at which retraining starts.
struct Recorded {
  RecordedRun run;
  MetricsTable metrics;
  std::map<Index, fs::path> checkpoints;
};

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

/// Returns the metrics after step `from` that retraining repeats. If the run was extended, its
/// former last step also has metrics that only a last step logs; these are left out.
MetricsTable repeatable(const RecordedRun& run, Index from) {
  std::set<Index> once_last;
  const Json continued = run.env.value("continued", Json::array());
  for (const Json& each : continued) once_last.insert(each.value("steps_before", Index{0}));
  once_last.erase(run.config.train.steps);  // still the last step
  MetricsTable part{run.metrics.step, {}, {}};
  const auto take = [&](const auto& columns, auto& to) {
    for (const auto& [name, column] : columns) {
      for (std::size_t i = 0; i < column.values().size(); ++i) {
        const std::size_t row = column.row(i);
        const auto step = static_cast<Index>(part.step[row]);
        if (step > from && (!once_last.contains(step) || run::is_of_every_step(name)))
          to[name].set(row, column.values()[i]);
      }
    }
  };
  take(run.metrics.columns, part.columns);
  take(run.metrics.lists, part.lists);
  return part;
}

/// Returns the first element in which a checkpoint and the state differ.
std::optional<Difference> tensor_difference(const fs::path& file, const run::TrainState& state) {
  const run::Checkpoint checkpoint(file);
  std::optional<Difference> found;
  const auto compare = [&](const std::string& name, std::span<const real> now) {
    if (found) return;
    const std::vector<real> was = checkpoint.file().read<real>(name);
    const auto same = [](real a, real b) { return run::same_bits(a, b); };
    const auto at = std::ranges::mismatch(was, now, same).in1 - was.begin();
    if (at == std::ssize(was) && was.size() == now.size()) return;
    const auto text = [&](std::span<const real> values) {
      return at < std::ssize(values) ? fmt::format("{}", values[at]) : "-";
    };
    found = {state.step, fmt::format("{}[{}]", name, at), text(was), text(now)};
  };
  for (const Parameter& p : state.model.parameters()) compare("model/" + p.name, p.value.values());
  for (const Optimizer::State& kept : state.optimizer.states())
    for (const StateTensor& tensor : kept.tensors)
      compare(fmt::format("optim/{}/{}", kept.parameter->name, tensor.name), tensor.value.values());
  return found;
}

Difference difference_of(const run::DifferentMetric& metric) {
  return {metric.step, metric.name, system::json_number(metric.a), system::json_number(metric.b)};
}

/// Returns the first metric of the retrained steps that differs from the recorded one.
std::optional<Difference> metric_difference(const MetricsTable& recorded, const MetricsTable& now) {
  const auto found = difference(recorded, now);
  std::vector<Difference> all;
  if (!found.metrics.empty()) all.push_back(difference_of(found.metrics.front()));
  const auto add_names = [&](const std::vector<std::string>& names, const MetricsTable& of,
                             const char* was, const char* is) {
    for (const std::string& name : names) {
      const auto number = of.columns.find(name);
      const std::size_t row =
          number != of.columns.end() ? number->second.row(0) : of.lists.find(name)->second.row(0);
      if (of.step[row] <= now.step.back())
        all.push_back({static_cast<Index>(of.step[row]), name, was, is});
    }
  };
  add_names(found.metrics_of_a, recorded, "logged", "-");
  add_names(found.metrics_of_b, now, "-", "logged");
  const auto first = std::ranges::min_element(all, {}, &Difference::step);
  return first == all.end() ? std::nullopt : std::optional(*first);
}

VerifyPass train_again(const Recorded& recorded, Index from, std::string& origin) {
  const RestoredState restored = restore_to_step(recorded.run, from);
  run::TrainState& state = *restored.state;
  for (Index step = 1; step <= state.step; ++step)  // diagnostics depend on earlier steps
    state.grad_norms[step - 1] = recorded.run.logged(run::metric("optim/grad_norm"), step);
  origin = restored.origin;
  VerifyPass pass{num_threads(), 0, std::nullopt};
  MetricsTable now;
  bool diverged = false;
  while (state.step < recorded.run.last_step() && !pass.difference && !diverged) {
    const run::Step step = take_logged_step(state);
    pass.steps += 1;
    append(now, step.step, metrics_of(state, step));
    if (const auto file = recorded.checkpoints.find(step.step); file != recorded.checkpoints.end())
      pass.difference = tensor_difference(file->second, state);
    const auto other = mismatch(recorded.run, step.step, step.loss, step.norms.global);
    if (other && !pass.difference) pass.difference = difference_of(*other);
    diverged = step.diverged.has_value();
  }
  if (const auto found = metric_difference(recorded.metrics, now);
      found && (!pass.difference || found->step < pass.difference->step))
    pass.difference = found;
  if (!pass.difference && state.step < recorded.run.last_step())
    pass.difference = Difference{state.step, "the end", "-", "diverged"};
  return pass;
}

/// Returns the engine and build of the run if they differ from the current ones, or nothing.
std::string other_engine(const RecordedRun& run) {
  const EngineScope scope(run.config.train.gemm);
  const Json build = run.env.value("build", Json::object());
  const auto word = [&](const char* key) { return build.value(key, std::string()); };
  const auto text = [](const std::string& gemm, const std::string& bf16, const std::string& vectors,
                       const std::string& commit) {
    return fmt::format("GEMM by {}, bfloat16 by {}, {}, commit {}", gemm,
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
  RecordedRun run = open_recorded(dir);
  const Index last = run.last_step();
  throw_if<UsageError>(request.from < 0 || request.from >= last,
                       "--from {}: must be below the last step of {}, from 0 to {}", request.from,
                       dir.string(), last - 1);
  std::vector<Index> threads = request.threads;
  if (threads.empty()) threads.push_back(num_threads());
  for (const Index count : threads) {
    throw_if<UsageError>(count < 1 || count > 1024, "--threads {}: must be from 1 to 1024", count);
  }
  Recorded recorded{std::move(run), {}, {}};
  Index begin = 0;
  for (const auto& [step, file] : run::checkpoints_in(recorded.run.checkpoints())) {
    if (step <= request.from) begin = std::max(begin, step);
    if (step > request.from && step <= last) recorded.checkpoints.emplace(step, file);
  }
  recorded.metrics = repeatable(recorded.run, begin);
  Verification found{dir, "", std::ssize(recorded.checkpoints), other_engine(recorded.run), {}};
  for (const Index count : threads) {
    request.say(fmt::format("retraining up to step {} with {} thread{}", last, count,
                            count == 1 ? "" : "s"));
    const UseThreads use(static_cast<int>(count));
    found.passes.push_back(train_again(recorded, request.from, found.origin));
  }
  return found;
}

std::string to_text(const Verification& found) {
  std::string text = fmt::format(
      "{}: retrained from {}; compared with the metrics of every step and {} checkpoint{}\n",
      system::printable(found.dir.string()), found.origin, found.checkpoints,
      found.checkpoints == 1 ? "" : "s");
  system::Table table{{{"", "threads"}, {"", "steps"}, {"", "result", true}}, {}};
  for (const VerifyPass& pass : found.passes) {
    const auto& other = pass.difference;
    table.rows.push_back({std::to_string(pass.threads), std::to_string(pass.steps),
                          other ? fmt::format("step {}: {} is {}, was {}", other->step, other->what,
                                              other->now, other->recorded)
                                : "equal"});
  }
  text += to_text(table);
  if (found.equal()) return text + "bitwise equal\n";
  if (!found.other_engine.empty())
    text += fmt::format("the run was computed with: {}\n", found.other_engine);
  return text + "not equal\n";
}

}  // namespace difftape::app
