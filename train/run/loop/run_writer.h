#pragma once
// Writes the run directory while a run trains.

#include <algorithm>
#include <span>
#include <string>

#include "core/profile.h"
#include "train/run/loop/step.h"
#include "train/run/loop/trainer.h"
#include "train/run/records/attention_maps.h"
#include "train/run/records/metrics.h"
#include "train/run/records/progress.h"
#include "train/run/records/tensorboard.h"
#include "train/stats/spikes.h"
#include "train/system/exit.h"

namespace difftape::run {

/// Returns events in Chrome's Trace Event Format, which Perfetto and chrome://tracing open: one
/// complete event ("ph": "X") each, in order, times in microseconds, the category in "cat", the
/// layer or step in "args".
std::string trace_json(std::span<const profile::Event> events);

/// Returns a table of the time by op, in milliseconds per step and percent of the step.
/// `step_tokens` and `step_flops` count one step, for the rates. `table` must have at least one
/// step.
std::string profile_text(const profile::Table& table, double step_tokens, double step_flops);

/// Selects and records the profiled steps: ten after two warm-up steps, that is steps 3 to 12 of
/// the process. A shorter run is profiled from step 3 on, or in its last step.
class ProfiledSteps {
 public:
  /// Selects among the steps `done` + 1 to `steps` of this process; none unless `wanted`.
  ProfiledSteps(bool wanted, Index done, Index steps)
      : first_(wanted ? std::min(done + 3, steps) : steps + 1), last_(std::min(done + 12, steps)) {}

  /// Calls f, which takes step `number`, and records it if it is profiled.
  template <class F>
  auto run(Index number, F&& f) {
    if (!covers(number)) return f();
    const profile::Recording recording(recorder_);
    const profile::Span step(profile::Category::step, "step", std::to_string(number));
    return f();
  }
  /// Returns true if step `number` is the last profiled one, or profiled when the run `ends`.
  bool done_at(Index number, bool ends) const {
    return covers(number) && (ends || number == last_);
  }

  const std::vector<profile::Event>& events() const { return recorder_.events(); }

 private:
  bool covers(Index number) const { return number >= first_ && number <= last_; }

  Index first_, last_;
  profile::Recorder recorder_;
};

/// Writes config.yaml and env.json of a new run. Returns it, before its first status. Throws
/// OutputError.
RunDir write_start(const TrainState& state, const TrainRequest& request);

/// Writes the files of a run directory that process 0 has locked.
class RunWriter {
 public:
  /// Opens the files for appending, and takes over the start time, the last attention maps and the
  /// loss spikes of a resumed run. `peak` is the peak rate of all processes together, FLOP/s.
  RunWriter(const TrainState& state, const TrainRequest& request, const RunDir& run, double peak);

  /// Records in status.json that the run is running.
  void begin(const TrainState& state) { write_state(state, RunState::running); }
  /// Prints and logs a line.
  void note(std::string_view line) { progress_.note(line); }
  /// Logs a step and prints its progress.
  void step(const TrainState& state, const Step& step);
  /// Writes a checkpoint, the attention maps and status.json, and removes the checkpoints that are
  /// not kept.
  void checkpoint(const TrainState& state);
  /// Writes trace.json and profile.txt, and prints the table.
  void profile(const TrainState& state, const ProfiledSteps& steps);
  /// Writes the final status, and prints the spikes and `line`.
  void end(const TrainState& state, RunState run_state, system::Exit exit, const std::string& line);
  /// Ends a run that diverged at this step.
  void end_diverged(const TrainState& state, const Step& step);
  /// Records that the run failed with an error.
  void failed() noexcept;

 private:
  void write_state(const TrainState& state, RunState run_state);
  void add_loss(double loss) { spikes_ += loss_spikes_.add(loss) ? 1 : 0; }
  void prune(const TrainState& state) const;
  void write_maps();

  std::filesystem::path dir_;
  RunStatus status_;
  MetricsWriter metrics_;
  std::optional<EventWriter> events_;  ///< set with log.tensorboard
  Progress progress_;
  stats::SpikeDetector loss_spikes_{stats::SpikeSeries::loss};
  Index spikes_ = 0;                   ///< loss spikes so far
  std::optional<AttentionMaps> maps_;  ///< maps of the last diagnostics that no file has yet
  double flops_per_token_;             ///< training FLOPs per token
  double peak_;                        ///< peak FLOP/s of all processes
};

}  // namespace difftape::run
