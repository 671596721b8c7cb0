#pragma once
// Writes the run directory while a run trains.

#include <algorithm>
#include <span>
#include <string>

#include "core/profile.h"
#include "train/run/loop/step.h"
#include "train/run/loop/trainer.h"
#include "train/run/records/metrics.h"
#include "train/run/records/progress.h"
#include "train/run/records/spike_records.h"
#include "train/run/records/tensorboard.h"
#include "train/system/exit.h"

namespace difftape::run {

/// The Trace Event Format of Chrome, which Perfetto and chrome://tracing open: one complete event
/// ("ph": "X") for each, in microseconds, its category in "cat", its layer or step in "args". The
/// order is that of `events`.
std::string trace_json(std::span<const profile::Event> events);

/// The table by op, in milliseconds a step and percent of the time, which add up to the step.
/// `step_tokens` and `step_flops` are those of one step, for the rates; at least one step.
std::string profile_text(const profile::Table& table, double step_tokens, double step_flops);

/// The steps of a run that are profiled, and what was recorded of them: ten steps after two that
/// warm up, so that a profile stays small however long the run is: the third to the twelfth that
/// the process takes; of fewer steps those from the third on, else the last one.
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

/// Writes config.yaml and env.json of a new run. Returns it, before its first status.
RunDir write_start(const TrainState& state, const TrainRequest& request);

/// Brings config.yaml and env.json up to date if the run goes on with another configuration, which
/// may make it longer, say where its files are, or write other files.
void record_continuation(const TrainState& state, const TrainRequest& request, RunDir& run);

/// Lets `best` name a checkpoint and removes those that do not stay, once `latest` names one. Done
/// again, it changes nothing.
void settle_checkpoints(const TrainState& state, const std::filesystem::path& dir);

/// Writes the files of a run directory that process 0 has locked.
class RunWriter {
 public:
  /// Opens the files to append to. `peak` is the FLOP/s that all processes can reach.
  RunWriter(const TrainState& state, const TrainRequest& request, double peak);

  /// Goes on from what a run that broke off left there: when it began, and its last maps.
  void restore(const TrainState& state, const RunDir& run);
  /// Says in status.json that the run has begun.
  void begin(const TrainState& state) { write_state(state, RunState::running); }
  /// Shows and logs a line.
  void note(std::string_view line) { progress_.note(line); }
  /// Logs a step, and shows it.
  void step(const TrainState& state, const Step& step);
  /// Writes a checkpoint and brings status.json up to date; metrics.h5 and spikes.csv too if the
  /// steps grew by a tenth since.
  void checkpoint(const TrainState& state);
  /// Writes trace.json and profile.txt, and shows the table.
  void profile(const TrainState& state, const ProfiledSteps& steps);
  /// Ends the records with state, exit code and, for the console, a line. Writes metrics.h5 and
  /// spikes.csv.
  void end(const TrainState& state, RunState run_state, system::Exit exit, const std::string& line);
  /// The same for a run that diverged at this step; writes its crash dump.
  void end_diverged(const TrainState& state, const Step& step);
  /// Records that the run broke off with an error; throws nothing.
  void failed() noexcept;

 private:
  void write_state(const TrainState& state, RunState run_state);
  std::vector<SpikeRecord> write_tables(const TrainState& state);

  std::filesystem::path dir_;
  RunStatus status_;
  MetricsWriter metrics_;
  std::optional<EventWriter> events_;  ///< nothing without log.tensorboard
  Progress progress_;
  Index tables_step_ = 0;              ///< at which metrics.h5 and spikes.csv were written
  std::optional<AttentionMaps> maps_;  ///< of the last diagnostics
  double flops_per_token_;             ///< in training
  double peak_;                        ///< FLOP/s
};

}  // namespace difftape::run
