#pragma once
// Many runs as one experiment: arms, the learning rates each was trained at, the seeds at each.
// Statistics count complete runs alone; a run that diverged is a result.

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

  std::vector<const RunRecord*> complete() const;  ///< those of `runs` that are
  /// The complete run of a seed, or nullptr.
  const RunRecord* complete(std::uint64_t seed) const;
};

/// Runs of one configuration but for learning rate and seed (`sweep.arms` in a sweep file).
struct Arm {
  std::string name;
  std::vector<Condition> conditions;  ///< ascending lr
  std::size_t task = 0;               ///< in Study::tasks

  std::vector<const RunRecord*> runs() const;
  /// The condition of this learning rate, or nullptr.
  const Condition* at(double lr) const;
};

struct Study {
  std::vector<Arm> arms;     ///< in the order of their first runs
  std::size_t baseline = 0;  ///< which arm the others are compared with
  /// What was learned and for how long: data, batch, steps, vocabulary. Losses compare within a
  /// task alone. In words that tell the tasks apart, "3200 steps"; one task needs none.
  std::vector<std::string> tasks = {""};

  std::vector<const RunRecord*> runs() const;
  std::vector<double> lrs() const;  ///< each once, ascending
  bool is_swept() const;            ///< an arm has more than one learning rate

  /// What an arm of the study is compared with: the baseline, or in another task the arm that is
  /// configured as it is, else the only one with its name (run.arm); nullptr if there is none.
  const Arm* baseline_of(const Arm& arm) const;
  /// The name of the baseline; of several tasks, that without the task.
  std::string baseline_name() const;
  /// The arms of one task alone. The task must have a baseline or be that of the baseline.
  Study of_task(std::size_t task) const;
};

/// Groups `runs`, which must outlive the study, by (task, run.arm, optim.lr, run.seed). Runs of one
/// arm that differ in another key become arms of their own, called "<arm> <key>=<value>"; so does
/// the second of two runs with the same configuration, called by its directory: a repetition with
/// the same seed is no second sample. Of several tasks every arm is called "<arm> (<task>)".
/// `baseline` is the name of an arm, with or without its task, "" the arm of the first run. Throws
/// UsageError without runs and for a baseline that does not exist.
Study make_study(std::span<const RunRecord> runs, const std::string& baseline = "");

/// "2 finished, 1 diverged at 120".
std::string describe_states(std::span<const RunRecord* const> runs);

/// Of keys, in this order, those that tell `items` apart where the ones before them do not;
/// `value_of` an item and a key.
std::vector<std::string> distinguishing_keys(
    const std::vector<std::string>& keys, std::size_t items,
    const std::function<std::string(std::size_t item, const std::string& key)>& value_of);

struct Tasks {
  std::vector<std::size_t> of_run;  ///< as long as the runs: a position in `words`
  /// Each task in the fewest keys that tell it from the others: "3200 steps"; "" if there is one.
  std::vector<std::string> words;
};

/// The tasks of runs in the order of their first ones. A key that one of two runs does not know, as
/// those of older versions, makes no difference; where the files were, none either: their digest
/// says more.
Tasks find_tasks(std::span<const RunRecord> runs);

/// Why numbers of two runs do not compare: they are of two tasks. Empty if they are of one.
std::string task_difference(const RunRecord& a, const RunRecord& b);

}  // namespace difftape::study
