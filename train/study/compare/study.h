#pragma once
// Many runs as one experiment: arms, the learning rates each was trained at, the seeds at each, and
// the tasks they were trained to do. Statistics count complete runs alone; a diverged run is a
// result.

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "train/study/compare/run_record.h"

namespace difftape::study {

/// The runs of an arm at one learning rate that differ in run.seed alone, by ascending seed.
struct Condition {
  double lr;
  std::vector<const RunRecord*> runs;

  std::vector<const RunRecord*> complete() const;
  const RunRecord* complete(std::uint64_t seed) const;
};

/// Runs of one configuration but for learning rate and seed (`sweep.arms` in a sweep file).
struct Arm {
  std::string name;
  std::vector<Condition> conditions;  ///< ascending lr
  std::size_t task = 0;               ///< in Study::tasks

  std::vector<const RunRecord*> runs() const;
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
  /// Data, batch, steps and vocabulary: losses compare within a task alone. In words that tell the
  /// tasks apart, "3200 steps"; one task needs none.
  std::vector<std::string> tasks = {""};

  std::vector<Cell> cells() const;  ///< in the order of the arms
  std::vector<const RunRecord*> runs() const;
  std::vector<std::string> arm_names() const { return mapped(arms, &Arm::name); }
  std::vector<double> lrs() const;  ///< each once, ascending
  bool is_swept() const;            ///< an arm has more than one learning rate

  /// Returns the baseline, or in another task the arm that is configured as the baseline is, else
  /// the only one with its run.arm; nullptr if there is none.
  const Arm* baseline_of(const Arm& arm) const;
  /// Returns the name of the baseline; of several tasks, without the task.
  std::string baseline_name() const;
  /// Returns the arms of one task. The task must have a baseline or be that of the baseline.
  Study of_task(std::size_t task) const;
};

/// Groups `runs`, which must outlive the study, by (task, run.arm, optim.lr, run.seed). Runs of one
/// arm that differ in another key become arms "<arm> <key>=<value>"; the second of two runs with
/// the same configuration becomes an arm called by its directory. Of several tasks every arm is
/// called "<arm> (<task>)". `baseline` names an arm, with or without its task; "" takes the arm of
/// the first run. Throws UsageError without runs and for a baseline that does not exist.
Study make_study(std::span<const RunRecord> runs, const std::string& baseline = "");

/// The same with the arm of the first run as the baseline as long as no run has that run.arm.
Study make_study_so_far(std::span<const RunRecord> runs, const std::string& baseline);

/// "2 finished, 1 diverged at 120".
std::string describe_states(std::span<const RunRecord* const> runs);

/// Returns the keys, in their order, that tell `items` apart where the ones before do not;
/// `value_of` takes an item and a key.
std::vector<std::string> distinguishing_keys(
    const std::vector<std::string>& keys, std::size_t items,
    const std::function<std::string(std::size_t item, const std::string& key)>& value_of);

struct Tasks {
  std::vector<std::size_t> of_run;  ///< one per run: a position in `words`
  /// Each task in the fewest keys that tell it from the others: "3200 steps"; "" if there is one.
  std::vector<std::string> words;
};

/// Returns the tasks in the order of their first runs.
Tasks find_tasks(std::span<const RunRecord> runs);

/// Returns why two runs are of different tasks; empty if they are of one.
std::string task_difference(const RunRecord& a, const RunRecord& b);

}  // namespace difftape::study
