#pragma once
// Groups runs into a study: tasks, arms, the learning rates of each arm, and the seeds at each.
// Statistics count complete runs only; a diverged run is a result.

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "train/study/compare/row.h"

namespace difftape::study {

/// Runs of an arm at one learning rate that differ in run.seed only, by ascending seed.
struct Condition {
  double lr;
  std::vector<const Row*> runs;

  std::vector<const Row*> complete() const;
  const Row* complete(std::uint64_t seed) const;
};

/// Runs that differ in learning rate and seed only (`sweep.arms` in a sweep file).
struct Arm {
  std::string name;
  std::vector<Condition> conditions;  ///< ascending lr
  std::size_t task = 0;               ///< index in Study::tasks

  std::vector<const Row*> runs() const;
  const Condition* at(double lr) const;
};

/// An arm at a learning rate.
struct Cell {
  const Arm& arm;
  const Condition& condition;
};

struct Study {
  std::vector<Arm> arms;     ///< in the order of their first runs
  std::size_t baseline = 0;  ///< the arm that the others are compared with
  /// A task is data, batch, steps and vocabulary, and the size of the model if arms ran at several
  /// sizes. Losses are compared within a task only. Entries are the words that distinguish the
  /// tasks, "3200 steps"; empty for a single task.
  std::vector<std::string> tasks = {""};

  std::vector<Cell> cells() const;  ///< in the order of the arms
  std::vector<const Row*> runs() const;
  std::vector<std::string> arm_names() const { return mapped(arms, &Arm::name); }
  std::vector<double> lrs() const;  ///< unique, ascending
  bool is_swept() const;            ///< whether an arm has more than one learning rate

  /// Returns the baseline. In another task it is the arm with the same configuration, else the only
  /// arm with the same run.arm; nullptr if there is none.
  const Arm* baseline_of(const Arm& arm) const;
  /// Returns the name of the baseline, without the task.
  std::string baseline_name() const;
  /// Returns the arms of one task, which must have a baseline.
  Study of_task(std::size_t task) const;
};

/// Groups `runs`, which must outlive the study, by (task, run.arm, optim.lr, run.seed). Runs of one
/// arm that differ in another key become arms "<arm> <key>=<value>". The second of two runs with
/// the same configuration becomes an arm named by its directory. With several tasks, arms are named
/// "<arm> (<task>)". `baseline` names an arm, with or without its task; "" selects the arm of the
/// first run. Throws UsageError without runs and for an unknown baseline.
Study make_study(std::span<const Row> runs, const std::string& baseline = "");

/// Does the same, but selects the arm of the first run as long as no run has the run.arm
/// `baseline`.
Study make_study_so_far(std::span<const Row> runs, const std::string& baseline);

/// Returns "2 finished, 1 diverged at 120".
std::string describe_states(std::span<const Row* const> runs);

/// Returns the keys, in their order, that distinguish items with equal values of all earlier keys;
/// `value_of` takes an item and a key.
std::vector<std::string> distinguishing_keys(
    const std::vector<std::string>& keys, std::size_t items,
    const std::function<std::string(std::size_t item, const std::string& key)>& value_of);

struct Tasks {
  std::vector<std::size_t> of_run;  ///< one per run: an index in `words`
  /// Each task by the fewest keys that distinguish it: "3200 steps"; "" for a single task.
  std::vector<std::string> words;
};

/// Returns the tasks in the order of their first runs.
Tasks find_tasks(std::span<const Row> runs);

/// Returns why two runs have different tasks; empty if they have the same task.
std::string task_difference(const Row& a, const Row& b);

}  // namespace difftape::study
