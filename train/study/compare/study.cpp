#include "train/study/compare/study.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/error.h"
#include "train/system/suggest.h"

namespace difftape::study {

namespace {

/// What makes the losses of two runs comparable: the task, how long and in which steps.
std::map<std::string, std::string> task_of(const RunRecord& run) {
  std::map<std::string, std::string> task;
  for (const auto& [key, value] : run.env.at("config").items()) {
    const bool of_task = key.starts_with("data.") || key == "model.vocab_size" ||
                         key == "train.steps" || key == "train.grad_accumulation";
    // The digest says more of files than their paths do.
    if (of_task && key != "data.path") task[key] = value.get<std::string>();
  }
  const auto data = run.env.find("data");
  if (data != run.env.end() && data->contains("xxh3_128"))
    task["the data (xxh3_128)"] = data->at("xxh3_128").get<std::string>();
  return task;
}

void require_one_task(std::span<const RunRecord> runs) {
  const auto first = task_of(runs.front());
  for (const RunRecord& run : runs) {
    const auto task = task_of(run);
    for (const auto& [key, value] : first) {
      const auto other = task.find(key);
      if (other == task.end() || other->second == value) continue;
      throw DataError(
          fmt::format("report: {} and {} do not compare: {} is {} in the first and {} in the "
                      "second; need runs of the same data, steps and batch: write one report for "
                      "each",
                      runs.front().dir.string(), run.dir.string(), key, value, other->second));
    }
  }
}

/// The keys in which runs of one arm differ, {arm, keys}.
std::map<std::string, std::set<std::string>> varied_keys(std::span<const RunRecord> runs) {
  std::map<std::string, const RunRecord*> firsts;
  std::map<std::string, std::set<std::string>> varied;
  for (const RunRecord& run : runs) {
    const RunRecord& first = *firsts.emplace(run.arm, &run).first->second;
    for (const auto& [key, value] : run.env.at("config").items()) {
      if (!is_shared(key) && first.config(key) != run.config(key)) varied[run.arm].insert(key);
    }
  }
  return varied;
}

Arm& find_or_add_arm(Study& study, const std::string& name) {
  for (Arm& arm : study.arms) {
    if (arm.name == name) return arm;
  }
  return study.arms.emplace_back(Arm{name, {}});
}

/// False if the arm has a run of this learning rate and seed.
bool add(Arm& arm, const RunRecord& run) {
  auto condition = std::find_if(arm.conditions.begin(), arm.conditions.end(),
                                [&](const Condition& each) { return each.lr >= run.lr; });
  if (condition == arm.conditions.end() || condition->lr != run.lr)
    condition = arm.conditions.insert(condition, {run.lr, {}});
  const auto place = std::find_if(condition->runs.begin(), condition->runs.end(),
                                  [&](const RunRecord* each) { return each->seed >= run.seed; });
  if (place != condition->runs.end() && (*place)->seed == run.seed) return false;
  condition->runs.insert(place, &run);
  return true;
}

}  // namespace

bool is_shared(const std::string& key) {
  return key.starts_with("run.") || key.starts_with("log.") || key == "optim.lr" ||
         key == "optim.min_lr" || key == "train.checkpoint_every";
}

std::vector<const RunRecord*> Condition::complete() const {
  std::vector<const RunRecord*> result;
  std::copy_if(runs.begin(), runs.end(), std::back_inserter(result),
               [](const RunRecord* run) { return run->complete(); });
  return result;
}

const RunRecord* Condition::complete(std::uint64_t seed) const {
  for (const RunRecord* run : runs) {
    if (run->seed == seed && run->complete()) return run;
  }
  return nullptr;
}

std::vector<const RunRecord*> Arm::runs() const {
  std::vector<const RunRecord*> all;
  for (const Condition& each : conditions) {
    all.insert(all.end(), each.runs.begin(), each.runs.end());
  }
  return all;
}

const Condition* Arm::at(double lr) const {
  const auto found = std::find_if(conditions.begin(), conditions.end(),
                                  [lr](const Condition& each) { return each.lr == lr; });
  return found == conditions.end() ? nullptr : &*found;
}

std::vector<const RunRecord*> Study::runs() const {
  std::vector<const RunRecord*> all;
  for (const Arm& arm : arms) {
    const auto some = arm.runs();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

bool Study::is_swept() const {
  return std::ranges::any_of(arms, [](const Arm& arm) { return arm.conditions.size() > 1; });
}

std::vector<double> Study::lrs() const {
  std::set<double> lrs;
  for (const Arm& arm : arms) {
    for (const Condition& condition : arm.conditions) lrs.insert(condition.lr);
  }
  return {lrs.begin(), lrs.end()};
}

Study make_study(std::span<const RunRecord> runs, const std::string& baseline) {
  if (runs.empty()) throw UsageError("report: no runs; give at least one run directory");
  require_one_task(runs);
  const auto varied = varied_keys(runs);
  Study study;
  for (const RunRecord& run : runs) {
    std::string name = run.arm;
    if (const auto keys = varied.find(run.arm); keys != varied.end()) {
      for (const std::string& key : keys->second)
        name += fmt::format(" {}={}", key, run.config(key));
    }
    if (!add(find_or_add_arm(study, name), run)) add(find_or_add_arm(study, run.dir.string()), run);
  }
  if (baseline.empty()) return study;
  std::vector<std::string> names;
  for (const Arm& arm : study.arms) names.push_back(arm.name);
  const auto found = std::find(names.begin(), names.end(), baseline);
  if (found == names.end()) {
    throw UsageError(fmt::format("report: no arm is called '{}'{}; the arms are {}", baseline,
                                 system::did_you_mean(baseline, names), fmt::join(names, ", ")));
  }
  study.baseline = static_cast<std::size_t>(found - names.begin());
  return study;
}

std::string describe_states(std::span<const RunRecord* const> runs) {
  std::map<run::RunState, int> count;
  std::string where;  // " at 12, 40": the steps at which runs diverged
  for (const RunRecord* run : runs) {
    const run::RunStatus& status = run->status;
    count[status.state] += 1;
    if (status.state == run::RunState::diverged) {
      where += fmt::format("{}{}", where.empty() ? " at " : ", ",
                           status.diverged ? status.diverged->step : status.step);
    }
  }
  std::vector<std::string> parts;
  using enum run::RunState;
  for (const run::RunState state : {finished, diverged, running, stopped, failed}) {
    if (!count.contains(state)) continue;
    parts.push_back(fmt::format("{} {}{}", count[state], to_string(state),
                                state == run::RunState::diverged ? where : ""));
  }
  return fmt::to_string(fmt::join(parts, ", "));
}

}  // namespace difftape::study
