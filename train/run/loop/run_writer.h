#pragma once
// Writes the run directory while a run trains.

#include <algorithm>

#include "core/profile.h"
#include "train/run/loop/step.h"
#include "train/run/loop/text_samples.h"
#include "train/run/loop/trainer.h"
#include "train/run/records/digests.h"
#include "train/run/records/metrics.h"
#include "train/run/records/progress.h"
#include "train/run/records/spike_records.h"
#include "train/run/records/tensorboard.h"
#include "train/system/exit.h"
#include "train/system/files.h"

namespace difftape::run {

/// Which steps of a run are profiled, and what was recorded of them.
/// Ten steps after two that warm up, so that a profile stays small however long the run is: the
/// third to the twelfth that the process takes; of fewer steps those from the third on, else the
/// last one.
class ProfiledSteps {
 public:
  /// For a process that takes the steps `done` + 1 to `steps`. Not `wanted`: no step is profiled.
  ProfiledSteps(bool wanted, Index done, Index steps)
      : first_(wanted ? std::min(done + 3, steps) : steps + 1), last_(std::min(done + 12, steps)) {}

  /// Calls f, which takes step `number`, and records it if it is one of those.
  template <class F>
  auto run(Index number, F&& f) {
    if (!covers(number)) return f();
    const profile::Recording recording(recorder_);
    const profile::Span step(profile::Category::step, "step", std::to_string(number));
    return f();
  }
  /// Whether there is a profile and step `number` was its last, or the last before the run `ends`.
  bool done_at(Index number, bool ends) const {
    return covers(number) && (ends || number == last_);
  }

  const std::vector<profile::Event>& events() const { return recorder_.events(); }

 private:
  bool covers(Index number) const { return number >= first_ && number <= last_; }

  Index first_, last_;
  profile::Recorder recorder_;
};

class RunWriter {
 public:
  /// Starts a new directory with config.yaml and env.json, or, to resume, restores `state` from
  /// the latest checkpoint (or leaves it at step 0 if there is none) and drops the metrics after
  /// it; a finished run that is asked for as it is stays untouched. Throws what these throw, and
  /// OutputError if another process trains in the directory.
  RunWriter(TrainState& state, const TrainRequest& request);

  /// Logs a step, and shows it.
  void step(const TrainState& state, const Step& step);
  /// Writes a line of text that the model generates, and shows it: "sample after step 100: ...".
  void sample(TrainState& state);
  /// Writes a checkpoint and brings status.json up to date; metrics.h5 and spikes.csv too if the
  /// steps grew by a tenth since.
  void checkpoint(const TrainState& state);
  /// Writes trace.json and profile.txt, and shows the table.
  void profile(const TrainState& state, const ProfiledSteps& steps);
  /// Ends the records with state, exit code and, for the console, a line. Writes metrics.h5 and
  /// spikes.csv.
  void end(const TrainState& state, RunState run_state, system::Exit exit, const std::string& line);
  /// The same for a run that has all its steps, of which none were left to do if it was `done`
  /// before. One that had ended so is left as it is: only the console says it.
  void end_finished(const TrainState& state, bool done);
  /// The same for a run that diverged at this step; writes its crash dump.
  void end_diverged(const TrainState& state, const Step& step);
  /// Records that the run broke off with an error; throws nothing.
  void failed() noexcept;

 private:
  void write_state(const TrainState& state, RunState run_state);
  std::vector<SpikeRecord> write_tables(const TrainState& state);

  std::optional<TextSamples> samples_;  ///< nothing without log.sample_interval
  std::filesystem::path dir_;
  system::DirectoryLock lock_;
  RunStatus status_;
  std::unique_ptr<MetricsWriter> metrics_;
  std::unique_ptr<DigestWriter> digests_;  ///< null without log.digest
  std::unique_ptr<EventWriter> events_;    ///< null without log.tensorboard
  std::unique_ptr<Progress> progress_;
  std::ostream& console_;
  bool had_finished_ = false;          ///< and is asked for no more: nothing is written
  Index tables_step_ = 0;              ///< at which metrics.h5 and spikes.csv were written
  std::optional<AttentionMaps> maps_;  ///< of the last diagnostics
  double flops_per_token_ = 0;         ///< in training
  double peak_ = 0;                    ///< FLOP/s
};

}  // namespace difftape::run
