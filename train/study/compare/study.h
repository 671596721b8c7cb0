#pragma once
// Groups runs into studies, one per task: arms, the learning rates of each arm, and the seeds at
// each. Statistics count complete runs only; a diverged run is a result.

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

/// Runs with one run.arm, which differ in learning rate and seed only.
struct Arm {
  std::string name;
  std::vector<Condition> conditions;  ///< ascending lr

  std::vector<const Row*> runs() const;
  const Condition* at(double lr) const;
};

/// An arm at a learning rate.
struct Cell {
  const Arm& arm;
  const Condition& condition;
};

/// Runs whose results can be compared. Their configurations differ between arms only.
struct Study {
  std::string task = {};       ///< words that distinguish it from other tasks: "3200 steps"
  std::vector<Arm> arms = {};  ///< in the order of their first runs
  std::string baseline = {};   ///< name of the arm that the others are compared with

  const Arm* reference() const;     ///< the baseline; nullptr if this task has no run of it
  std::vector<Cell> cells() const;  ///< in the order of the arms
  std::vector<const Row*> runs() const;
  std::vector<std::string> arm_names() const { return mapped(arms, &Arm::name); }
  std::vector<double> lrs() const;  ///< unique, ascending
  bool is_swept() const;            ///< whether an arm has more than one learning rate
};

/// Groups runs by task, in the order of first runs. `runs` must outlive the studies. Runs of one
/// task have equal data, batches, steps and vocabulary; runs of one task and arm differ in learning
/// rate and seed only, so that an arm of several sizes has as many tasks. The second of two runs
/// with the same configuration is an arm named by its directory. An empty `baseline` means the arm
/// of the first run. Throws UsageError without runs, and if no run has that arm.
std::vector<Study> make_studies(std::span<const Row> runs, const std::string& baseline = "");

/// Returns a name if some run has that arm, else "".
std::string known_arm(std::span<const Row> runs, const std::string& name);

/// Returns runs of one task as a study.
Study make_study(std::span<const Row> runs, const std::string& baseline = "");

/// Returns all arms in one study, to draw them together; with several tasks they are called
/// "<arm> (<task>)".
Study drawn_together(std::span<const Study> studies);

/// Returns "2 finished, 1 diverged at 120".
std::string describe_states(std::span<const Row* const> runs);

/// Returns why two runs have different tasks; empty if they have the same task.
std::string task_difference(const Row& a, const Row& b);

}  // namespace difftape::study
