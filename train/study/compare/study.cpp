#include "train/study/compare/study.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/error.h"
#include "train/run/config/fields.h"
#include "train/run/config/writer.h"
#include "train/system/suggest.h"

namespace difftape::study {

namespace {

/// Returns the name of each run's arm without the task: run.arm, and the keys in which runs of that
/// name and task differ.
std::vector<std::string> names_of(std::span<const Row> runs, const Tasks& tasks) {
  using Group = std::pair<std::size_t, std::string>;
  std::map<Group, const Row*> firsts;
  std::map<Group, std::set<std::string>> varied;
  const auto group = [&](std::size_t i) { return Group(tasks.of_run[i], runs[i].arm); };
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Row& first = *firsts.emplace(group(i), &runs[i]).first->second;
    for (const std::string& key : differing_keys(first, runs[i])) {
      if (run::has_flag(key, run::kOfArm)) varied[group(i)].insert(key);
    }
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::string& name = names.emplace_back(runs[i].arm);
    for (const std::string& key : varied[group(i)]) {
      name += fmt::format(" {}={}", key, runs[i].value(key));
    }
  }
  return names;
}

/// Returns the arm of a name and a task; with several tasks, its name contains the task.
Arm& find_or_add_arm(Study& study, const std::string& plain, std::size_t task) {
  const std::string& words = study.tasks[task];
  const std::string name = words.empty() ? plain : fmt::format("{} ({})", plain, words);
  for (Arm& arm : study.arms) {
    if (arm.name == name) return arm;
  }
  return study.arms.emplace_back(Arm{name, {}, task});
}

/// Adds a run. Returns false if the arm already has a run with its learning rate and seed.
bool add(Arm& arm, const Row& run) {
  auto condition = std::ranges::lower_bound(arm.conditions, run.lr, {}, &Condition::lr);
  if (condition == arm.conditions.end() || condition->lr != run.lr)
    condition = arm.conditions.insert(condition, {run.lr, {}});
  const auto place = std::ranges::lower_bound(condition->runs, run.seed, {}, &Row::seed);
  if (place != condition->runs.end() && (*place)->seed == run.seed) return false;
  condition->runs.insert(place, &run);
  return true;
}

const Row& first_run(const Arm& arm) { return *arm.conditions.front().runs.front(); }

bool are_configured_alike(const Arm& a, const Arm& b) {
  return std::ranges::all_of(differing_keys(first_run(a), first_run(b)), [](const auto& key) {
    return !run::has_flag(key, run::kOfArm) || run::has_flag(key, run::kOfTask);
  });
}

/// Returns the index of the arm of that name, with or without its task.
std::size_t find_baseline(const Study& study, const std::string& name) {
  const std::vector<std::string> names = study.arm_names();
  auto found = std::ranges::find(names, name);
  if (found == names.end() && study.tasks.size() > 1) {
    found = std::ranges::find_if(
        names, [&](const std::string& each) { return each.starts_with(name + " ("); });
  }
  if (found == names.end()) {
    throw UsageError(fmt::format("report: no arm is named '{}'{}; the arms are {}", name,
                                 system::did_you_mean(name, names), fmt::join(names, ", ")));
  }
  return static_cast<std::size_t>(found - names.begin());
}

}  // namespace

std::vector<const Row*> Condition::complete() const {
  std::vector<const Row*> result;
  std::ranges::copy_if(runs, std::back_inserter(result), &Row::complete);
  return result;
}

const Row* Condition::complete(std::uint64_t seed) const {
  const auto found = std::ranges::find(runs, seed, &Row::seed);
  return found != runs.end() && (*found)->complete() ? *found : nullptr;
}

std::vector<const Row*> Arm::runs() const {
  std::vector<const Row*> all;
  for (const Condition& each : conditions) std::ranges::copy(each.runs, std::back_inserter(all));
  return all;
}

const Condition* Arm::at(double lr) const {
  const auto found = std::ranges::find(conditions, lr, &Condition::lr);
  return found == conditions.end() ? nullptr : &*found;
}

std::vector<Cell> Study::cells() const {
  std::vector<Cell> all;
  for (const Arm& arm : arms) {
    for (const Condition& condition : arm.conditions) all.push_back({arm, condition});
  }
  return all;
}

std::vector<const Row*> Study::runs() const {
  std::vector<const Row*> all;
  for (const Arm& arm : arms) std::ranges::copy(arm.runs(), std::back_inserter(all));
  return all;
}

bool Study::is_swept() const {
  return std::ranges::any_of(arms, [](const Arm& arm) { return arm.conditions.size() > 1; });
}

std::vector<double> Study::lrs() const {
  std::set<double> lrs;
  for (const Cell& cell : cells()) lrs.insert(cell.condition.lr);
  return {lrs.begin(), lrs.end()};
}

const Arm* Study::baseline_of(const Arm& arm) const {
  const Arm& base = arms[baseline];
  if (arm.task == base.task) return &base;
  std::vector<const Arm*> named;
  for (const Arm& each : arms) {
    if (each.task != arm.task) continue;
    if (are_configured_alike(each, base)) return &each;
    if (first_run(each).arm == first_run(base).arm) named.push_back(&each);
  }
  return named.size() == 1 ? named.front() : nullptr;
}

std::string Study::baseline_name() const {
  return tasks.size() > 1 ? first_run(arms[baseline]).arm : arms[baseline].name;
}

Study Study::of_task(std::size_t task) const {
  Study part;
  for (const Arm& arm : arms) {
    if (arm.task != task) continue;
    if (&arm == baseline_of(arm)) part.baseline = part.arms.size();
    part.arms.push_back(arm);
    part.arms.back().task = 0;
  }
  return part;
}

Study make_study(std::span<const Row> runs, const std::string& baseline) {
  if (runs.empty()) throw UsageError("report: there are no runs; give at least one run directory");
  const Tasks tasks = find_tasks(runs);
  const std::vector<std::string> names = names_of(runs, tasks);
  Study study;
  study.tasks = tasks.words;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::size_t task = tasks.of_run[i];
    if (!add(find_or_add_arm(study, names[i], task), runs[i]))
      add(find_or_add_arm(study, runs[i].dir.string(), task), runs[i]);
  }
  if (!baseline.empty()) study.baseline = find_baseline(study, baseline);
  return study;
}

Study make_study_so_far(std::span<const Row> runs, const std::string& baseline) {
  const bool there = std::ranges::count(runs, baseline, &Row::arm) > 0;
  return make_study(runs, there ? baseline : "");
}

std::string describe_states(std::span<const Row* const> runs) {
  std::map<run::RunState, int> count;
  std::string where;  // " at 12, 40": the steps at which runs diverged
  for (const Row* run : runs) {
    const run::RunStatus& status = run->status;
    count[status.state] += 1;
    if (status.state == run::RunState::diverged) {
      where += fmt::format("{}{}", where.empty() ? " at " : ", ",
                           status.diverged ? status.diverged->step : status.step);
    }
  }
  std::vector<std::string> parts;
  using enum run::RunState;
  for (const run::RunState state : {finished, diverged, running, stopped, failed, killed}) {
    if (!count.contains(state)) continue;
    parts.push_back(fmt::format("{} {}{}", count[state], to_string(state),
                                state == run::RunState::diverged ? where : ""));
  }
  return fmt::to_string(fmt::join(parts, ", "));
}

namespace {

using Keys = run::FlatConfig;

constexpr const char* kDigest = "data";  ///< sorts before the keys "data.<...>"

Keys keys_of(const Row& run) {
  Keys keys;
  for (const auto& [key, value] : run.config)
    if (run::has_flag(key, run::kOfTask)) keys.emplace_back(key, value);
  if (const std::string digest = run.fact("data"); !digest.empty())
    keys.emplace_back(kDigest, digest + run.fact("val_data"));
  std::ranges::sort(keys);
  return keys;
}

std::string in_words(const std::string& key, const std::string& value) {
  constexpr std::size_t kDigits = 8;  // of the digest; enough to distinguish files
  if (value.empty()) return "unknown " + key;
  if (key == "data.type") return value;
  if (key == kDigest) return "data " + value.substr(0, kDigits);
  if (key == "train.steps") return value + " steps";
  if (key == "data.batch_size") return "batches of " + value;
  if (key == "data.seq_len") return "sequences of " + value;
  if (key == "model.d_model") return "d_model " + value;
  return fmt::format("{}={}", key, value);
}

/// Returns the keys in the order in which they are tried: the most informative first, the digest
/// last.
std::vector<std::string> ordered_keys(const std::vector<Keys>& tasks) {
  std::vector<std::string> order = {"data.type", "train.steps", "data.batch_size", "data.seq_len"};
  std::set<std::string> others;
  for (const Keys& task : tasks) {
    for (const auto& [key, value] : task) others.insert(key);
  }
  for (const std::string& key : order) others.erase(key);
  others.erase(kDigest);
  order.insert(order.end(), others.begin(), others.end());
  order.emplace_back(kDigest);
  return order;
}

std::vector<std::string> words_of(const std::vector<Keys>& tasks) {
  const auto value_of = [&](std::size_t task, const std::string& key) {
    const auto found = std::ranges::find(tasks[task], key, &Keys::value_type::first);
    return found == tasks[task].end() ? std::string() : found->second;
  };
  const auto keys = distinguishing_keys(ordered_keys(tasks), tasks.size(), value_of);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    std::vector<std::string> words;
    for (const std::string& key : keys) words.push_back(in_words(key, value_of(i, key)));
    texts.push_back(fmt::format("{}", fmt::join(words, ", ")));
  }
  return texts;
}

}  // namespace

std::vector<std::string> distinguishing_keys(
    const std::vector<std::string>& keys, std::size_t items,
    const std::function<std::string(std::size_t, const std::string&)>& value_of) {
  std::vector<std::vector<std::string>> known(items);  // values of the chosen keys, per item
  std::vector<std::string> taken;
  std::size_t classes = 1;
  for (const std::string& key : keys) {
    std::vector<std::vector<std::string>> more = known;
    for (std::size_t i = 0; i < items; ++i) more[i].push_back(value_of(i, key));
    const std::size_t now = std::set(more.begin(), more.end()).size();
    if (now <= classes) continue;
    classes = now;
    known = std::move(more);
    taken.push_back(key);
  }
  return taken;
}

namespace {

/// Returns the keys of size in which runs of one arm differ: the arms ran at several sizes, which
/// are compared separately. Arms that are sizes themselves are compared with each other.
std::vector<std::string> swept_sizes(std::span<const Row> runs) {
  std::vector<std::string> keys;
  for (const char* key : {"model.d_model", "model.num_layers", "model.d_ff", "model.num_heads",
                          "model.num_kv_heads", "model.head_dim", "model.vocab_size"}) {
    std::map<std::string, std::string> of_arm;
    const bool varies = std::ranges::any_of(runs, [&](const Row& run) {
      const std::string value = run.value(key);
      return of_arm.emplace(run.arm, value).first->second != value;
    });
    if (varies) keys.emplace_back(key);
  }
  return keys;
}

}  // namespace

Tasks find_tasks(std::span<const Row> runs) {
  Tasks tasks;
  std::vector<Keys> firsts;
  const std::vector<std::string> sizes = swept_sizes(runs);
  for (const Row& run : runs) {
    Keys keys = keys_of(run);
    for (const std::string& size : sizes) keys.emplace_back(size, run.value(size));
    const auto same = std::ranges::find_if(
        firsts, [&](const Keys& first) { return run::differences(first, keys).empty(); });
    tasks.of_run.push_back(static_cast<std::size_t>(same - firsts.begin()));
    if (same == firsts.end()) firsts.push_back(keys);
  }
  tasks.words = words_of(firsts);
  return tasks;
}

std::string task_difference(const Row& a, const Row& b) {
  const auto found = run::differences(keys_of(a), keys_of(b));
  if (found.empty()) return "";
  return fmt::format("{} and {} cannot be compared: {} is {} and {}", a.arm, b.arm, found[0].key,
                     found[0].a, found[0].b);
}

}  // namespace difftape::study
