#include "train/study/compare/study.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/error.h"
#include "train/run/config/fields.h"
#include "train/system/number.h"
#include "train/system/suggest.h"

namespace difftape::study {

namespace {

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

Arm& find_or_add_arm(Study& study, const std::string& name) {
  const auto found = std::ranges::find(study.arms, name, &Arm::name);
  return found != study.arms.end() ? *found : study.arms.emplace_back(Arm{name, {}});
}

void add(Study& study, const Row& run) {
  if (!add(find_or_add_arm(study, run.arm), run))
    add(find_or_add_arm(study, run.dir.string()), run);
}

void require_runs(std::span<const Row> runs) {
  if (runs.empty()) throw UsageError("report: there are no runs; give at least one run directory");
}

constexpr const char* kDigest = "data";  ///< stands for the digest of the data among the keys

std::string value_of(const Row& run, const std::string& key) {
  if (key == kDigest) return run.fact("data") + run.fact("val_data");
  const std::string text = run.value(key);
  const auto number = system::read_number<double>(text);
  return number ? fmt::to_string(*number) : text;
}

/// Returns the keys by which runs can be grouped: those that this version knows or that all runs
/// have, the most informative first.
std::vector<std::string> keys_of(std::span<const Row> runs) {
  std::vector<std::string> keys{"data.type",    "train.steps",   "data.batch_size",
                                "data.seq_len", "model.d_model", "model.num_layers"};
  std::map<std::string, std::size_t> counts;
  for (const Row& run : runs)
    for (const auto& [key, value] : run.config) counts[key] += 1;
  for (const auto& [key, count] : counts)
    if (count == runs.size() || run::find_field(key)) add_once(keys, key);
  return keys;
}

/// Runs by the values of the keys that separate them.
struct Groups {
  std::vector<std::string> keys = {};
  std::vector<std::vector<std::string>> values;  ///< per run

  explicit Groups(std::size_t runs) : values(runs) {}
  void split(const std::string& key, std::span<const Row> runs) {
    keys.push_back(key);
    for (std::size_t i = 0; i < runs.size(); ++i) values[i].push_back(value_of(runs[i], key));
  }
  std::size_t count() const { return std::set(values.begin(), values.end()).size(); }
};

/// Returns whether two runs of one arm and one group have different values of a key.
bool differs_within_arms(const Groups& groups, const std::string& key, std::span<const Row> runs) {
  std::map<std::pair<std::vector<std::string>, std::string>, std::string> firsts;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string value = value_of(runs[i], key);
    const auto [first, added] = firsts.emplace(std::pair(groups.values[i], runs[i].arm), value);
    if (first->second != value) return true;
  }
  return false;
}

/// Splits runs by task, and then until the runs of an arm differ in learning rate and seed only.
Groups groups_of(std::span<const Row> runs) {
  Groups groups(runs.size());
  const std::vector<std::string> keys = keys_of(runs);
  for (const std::string& key : keys)
    if (run::has_flag(key, run::kOfTask)) groups.split(key, runs);
  groups.split(kDigest, runs);
  for (const std::string& key : keys) {
    const bool other = run::has_flag(key, run::kOfArm) && !run::has_flag(key, run::kOfTask);
    if (other && differs_within_arms(groups, key, runs)) groups.split(key, runs);
  }
  return groups;
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

/// Returns the fewest keys, in their order, that separate the groups as well as all do.
std::vector<std::string> distinguishing_keys(const Groups& groups, std::span<const Row> runs) {
  std::vector<std::string> order = groups.keys;
  std::ranges::stable_partition(order, [](const auto& key) { return key != kDigest; });
  Groups fewest(runs.size());
  for (const std::string& key : order) {
    Groups more = fewest;
    more.split(key, runs);
    if (more.count() > fewest.count()) fewest = std::move(more);
  }
  return fewest.keys;
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

const Arm* Study::reference() const {
  const auto found = std::ranges::find(arms, baseline, &Arm::name);
  return found == arms.end() ? nullptr : &*found;
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

std::vector<Study> make_studies(std::span<const Row> runs, const std::string& baseline) {
  require_runs(runs);
  if (!baseline.empty() && known_arm(runs, baseline).empty()) {
    std::vector<std::string> names;
    for (const Row& run : runs) add_once(names, run.arm);
    throw UsageError(fmt::format("report: no arm is named '{}'{}; the arms are {}", baseline,
                                 system::did_you_mean(baseline, names), fmt::join(names, ", ")));
  }
  const Groups groups = groups_of(runs);
  const std::vector<std::string> keys = distinguishing_keys(groups, runs);
  std::vector<Study> studies;
  std::map<std::vector<std::string>, std::size_t> places;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto [place, is_new] = places.emplace(groups.values[i], studies.size());
    if (is_new) {
      const auto words =
          mapped(keys, [&](const auto& key) { return in_words(key, value_of(runs[i], key)); });
      studies.push_back({.task = fmt::format("{}", fmt::join(words, ", ")),
                         .baseline = baseline.empty() ? runs[0].arm : baseline});
    }
    add(studies[place->second], runs[i]);
  }
  return studies;
}

std::string known_arm(std::span<const Row> runs, const std::string& name) {
  return std::ranges::find(runs, name, &Row::arm) == runs.end() ? "" : name;
}

Study make_study(std::span<const Row> runs, const std::string& baseline) {
  require_runs(runs);
  Study study{.baseline = baseline.empty() ? runs[0].arm : baseline};
  for (const Row& run : runs) add(study, run);
  return study;
}

Study drawn_together(std::span<const Study> studies) {
  Study all;
  for (const Study& study : studies) {
    for (Arm arm : study.arms) {
      const bool is_baseline = arm.name == study.baseline;
      if (!study.task.empty()) arm.name += fmt::format(" ({})", study.task);
      if (is_baseline && all.baseline.empty()) all.baseline = arm.name;
      all.arms.push_back(std::move(arm));
    }
  }
  if (all.baseline.empty()) all.baseline = all.arms.front().name;
  return all;
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

std::string task_difference(const Row& a, const Row& b) {
  std::vector<std::string> keys = differing_keys(a, b);
  std::erase_if(keys, [](const auto& key) { return !run::has_flag(key, run::kOfTask); });
  const std::string mine = value_of(a, kDigest), theirs = value_of(b, kDigest);
  if (!mine.empty() && !theirs.empty() && mine != theirs) keys.emplace_back(kDigest);
  if (keys.empty()) return "";
  return fmt::format("{} and {} cannot be compared: {} is {} and {}", a.arm, b.arm, keys[0],
                     value_of(a, keys[0]), value_of(b, keys[0]));
}

}  // namespace difftape::study
