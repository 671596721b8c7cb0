#include "train/run/loop/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>

#include "core/distributed.h"
#include "core/error.h"
#include "core/parallel.h"
#include "core/platform.h"
#include "core/profile.h"
#include "train/run/config/writer.h"
#include "train/run/loop/continuation.h"
#include "train/run/loop/data_parallel.h"
#include "train/run/loop/run_writer.h"
#include "train/run/loop/step.h"
#include "train/run/loop/step_memory.h"
#include "train/run/loop/train_state.h"
#include "train/run/records/run_files.h"
#include "train/system/cpus.h"
#include "train/system/exit.h"
#include "train/system/files.h"
#include "train/system/memory.h"
#include "train/system/number.h"

namespace difftape::run {
namespace {

using Json = nlohmann::ordered_json;

/// Starts to measure the peak of the machine, in about 500 samples, on other threads.
std::future<double> start_peak_measurement() {
  return std::async(std::launch::async, [threads = num_threads()] {
    set_num_threads(threads);  // which is a setting of each thread
    return measure_fma_peak(0.01);
  });
}

/// Output of process 0; empty in the other processes.
struct Records {
  std::optional<system::DirectoryLock> lock;  ///< excludes other processes from the directory
  std::unique_ptr<RunWriter> writer;          ///< null if a finished run is resumed
};

/// Reason why a run ends before its last step, if it does.
struct RunEnd {
  system::Exit exit = system::Exit::ok;  ///< ok: the run continues
  std::optional<Step> diverged = {};
};

using Clock = std::chrono::steady_clock;

/// Measures the time since the last checkpoint.
struct CheckpointClock {
  bool is_due() const { return Clock::now() - last >= after; }
  void restart() { last = Clock::now(); }

  std::chrono::duration<double> after;
  Clock::time_point last = Clock::now();
};

/// Takes one step with the validation, diagnostics, log and checkpoint due after it.
RunEnd step_and_log(TrainState& state, const Records& records, const system::StopRequest& stop,
                    CheckpointClock& clock) {
  const TrainConfig& config = state.config.train;
  Step step = take_logged_step(state);
  StepRequests request;
  if (state.step < config.steps)
    request = requests_of_any({.stop = stop.received(), .save = clock.is_due()});
  const bool saves = !step.diverged && (request.stop != system::Exit::ok || request.save ||
                                        due(step.step, config.checkpoint_interval, config.steps));
  const WholeOptimizer whole(state.optimizer, saves);
  if (RunWriter* writer = records.writer.get()) {
    writer->step(state, step);
    if (saves) writer->checkpoint(state);
  }
  if (saves) clock.restart();
  if (step.diverged) return {system::Exit::diverged, std::move(step)};
  return {request.stop};
}

/// Tells once if the threads of the run wait for each other.
class ThreadWatch {
 public:
  /// Returns the note to print after a step, empty if there is none.
  std::string note() {
    constexpr double kSeconds = 5;
    const system::CpuUse now = system::CpuUse::now(), use = now - since_;
    const int threads = num_threads();
    if (told_ || use.seconds < kSeconds) return "";
    since_ = now;
    told_ = system::wait_for_each_other(use, threads);
    if (!told_) return "";
    return fmt::format(
        "{} threads got {:.1f} CPUs, so they wait for each other: other programs or a CPU quota "
        "use the rest; OMP_NUM_THREADS={} is probably faster",
        threads, use.cpu_seconds / use.seconds,
        std::max(1, static_cast<int>(use.cpu_seconds / use.seconds)));
  }

 private:
  system::CpuUse since_ = system::CpuUse::now();
  bool told_ = false;
};

/// Tells if a signal came some seconds ago: a short validation may end before what sent the signal
/// loses patience, which takes it 30 seconds.
class PatientStop {
 public:
  explicit PatientStop(const system::StopRequest& stop) : stop_(&stop) {}
  bool operator()() {
    if (stop_->received() == system::Exit::ok) return false;
    const auto now = Clock::now();
    if (!since_) since_ = now;
    return now - *since_ > std::chrono::seconds(5);
  }

 private:
  const system::StopRequest* stop_;
  std::optional<Clock::time_point> since_;
};

system::Exit run_steps(TrainState& state, const Records& records, const TrainRequest& request,
                       const system::StopRequest& stop) {
  RunWriter* writer = records.writer.get();
  const Index steps = state.config.train.steps;
  ProfiledSteps profiled(request.profile, state.step, steps);
  CheckpointClock clock{request.checkpoint_after};
  ThreadWatch threads;
  if (distributed::count() == 1) state.stopped = PatientStop(stop);
  while (state.step < steps) {
    RunEnd end;
    try {
      end = profiled.run(state.step + 1, [&] { return step_and_log(state, records, stop, clock); });
    } catch (const ValidationStopped&) {  // the step is not logged; resuming repeats it
      end.exit = stop.received();
    }
    const bool ends = end.exit != system::Exit::ok;
    if (const std::string note = threads.note(); writer && !note.empty()) writer->note(note);
    const WholeOptimizer whole(state.optimizer, end.diverged.has_value());
    if (writer && profiled.done_at(state.step, ends)) writer->profile(state, profiled);
    if (writer && end.diverged) {
      writer->end_diverged(state, *end.diverged);
    } else if (writer && ends) {
      writer->end(state, RunState::stopped, end.exit,
                  fmt::format("stopped at step {}; continue with: {}", state.step,
                              resume_command(request.out)));
    }
    if (ends) return end.exit;
  }
  return system::Exit::ok;
}

/// Creates or checks the run directory and locks it.
system::DirectoryLock take_directory(const TrainRequest& request) {
  if (request.resume)
    require_run_dir(request.out,
                    "nothing to continue: leave out --resume, or use --resume=auto, which then "
                    "starts the run");
  else
    create_run_dir(request.out);
  system::DirectoryLock lock(request.out);
  // Another process may have begun and ended a run here before it was locked.
  if (!request.resume) create_run_dir(request.out);
  return lock;
}

/// Returns true if the run has finished with this configuration and all its files are written.
bool has_finished(const TrainState& state, const RunDir& run) {
  return state.step == state.config.train.steps && run.status.state == RunState::finished &&
         differences(run.config, state.config).empty();
}

/// Restores the state of a resumed run. Returns nothing if no step is left to do.
std::optional<RunDir> continue_run(TrainState& state, const TrainRequest& request) {
  RunDir run = open_run(request.out);
  remove_temporary_files(request.out);
  resume(state, run);
  if (has_finished(state, run)) return std::nullopt;
  const std::string yaml = to_yaml(state.config);  // may be longer, or have other paths
  if (yaml != to_yaml(run.config)) system::replace_text(run.dir / "config.yaml", yaml);
  return run;
}

/// Returns the sizes of both parts of the data, and how often the steps of the run read the first.
std::string reading_note(const Config& config, const Json& data) {
  const std::string unit = data.contains("bytes") ? "bytes" : "tokens";
  const Index validation = data.at("val_" + unit).get<Index>();
  Index training = data.at(unit).get<Index>();
  if (!data.contains("val_xxh3_128")) training -= validation;
  const double times = static_cast<double>(config.train.steps * tokens_per_step(config)) /
                       static_cast<double>(training);
  const std::string read = times < 1
                               ? "of which " + system::short_number(100 * times, 3) + " % are read"
                               : "read " + system::short_number(times, 3) + " times";
  return fmt::format("{} {} for training, {}; {} for validation", system::grouped(training), unit,
                     read, system::grouped(validation));
}

/// Prints information about the run before the first step.
void show_start(RunWriter& writer, const TrainState& state, const TrainRequest& request,
                const RunDir& run) {
  if (request.resume)
    writer.note(fmt::format("resuming after step {} of {}", state.step, state.config.train.steps));
  if (!request.note.empty()) writer.note(request.note);
  if (const std::optional<BestAchievable> best = state.data->best()) {
    writer.note(fmt::format("best achievable: loss {:.4f}, accuracy {:.1f} %", best->loss,
                            100 * best->accuracy));
  }
  if (const auto& from = state.origin; from && !request.resume) {
    writer.note(fmt::format("starting with the weights of {}, step {}", from->checkpoint.string(),
                            from->step));
  }
  for (const std::string& note : state.data->notes()) writer.note(note);
  const Json data = run.env.value("data", Json::object());  // as the run began
  if (data.contains("epoch_sequences")) writer.note(reading_note(state.config, data));
  if (const std::string warning = state.data->warning(); !warning.empty()) writer.note(warning);
}

/// Opens the run directory of a new or resumed run. Unusable initial weights leave no directory
/// behind.
Records open_records(TrainState& state, const TrainRequest& request) {
  Records records;
  if (!request.resume) take_initial_weights(state);
  records.lock.emplace(take_directory(request));
  std::future<double> peak = start_peak_measurement();
  const std::optional<RunDir> run =
      request.resume ? continue_run(state, request) : write_start(state, request);
  if (!run) return records;
  records.writer = std::make_unique<RunWriter>(
      state, request, *run, peak.get() * static_cast<double>(distributed::count()));
  show_start(*records.writer, state, request, *run);
  records.writer->begin(state);
  return records;
}

/// Reports that the run is finished; `done` if it was so before.
void end_finished(const TrainState& state, const TrainRequest& request, RunWriter* writer,
                  bool done) {
  const std::string dir = request.out.string();
  const std::string line =
      done ? fmt::format("{} is finished: nothing to do; --init-from {} begins a longer run", dir,
                         dir)
           : fmt::format("finished; results are in {}", dir);
  if (writer)
    writer->end(state, RunState::finished, system::Exit::ok, line);
  else if (request.console)
    *request.console << line << std::endl;
}

}  // namespace

std::filesystem::path default_out(const Config& config) {
  return config.run.out.empty() ? std::filesystem::path("runs") / config.run.name
                                : std::filesystem::path(config.run.out);
}

system::Exit train(const Config& config, const TrainRequest& request) {
  require_memory(config, distributed::on_this_machine(), system::free_memory());
  require_shares(config, distributed::count());
  TrainState state(config);
  distributed::ready();
  require_same(state);
  state.optimizer.gather();
  // From here on, a signal ends the run after a checkpoint.
  const bool tells = request.console != nullptr && distributed::rank() == 0;
  const system::StopRequest stop(
      tells ? "stopping after this step and a checkpoint; a second signal ends at once\n"
            : nullptr);
  const Records records = distributed::rank() == 0 ? open_records(state, request) : Records{};
  const bool done = state.step == config.train.steps;
  try {
    state.scatter();
    const system::Exit exit = run_steps(state, records, request, stop);
    if (exit == system::Exit::ok && distributed::rank() == 0)
      end_finished(state, request, records.writer.get(), done);
    return exit;
  } catch (...) {
    if (records.writer) records.writer->failed();
    throw;
  }
}

}  // namespace difftape::run
