#include "train/study/sweep/run_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>

#include "core/error.h"
#include "layers/cost.h"
#include "train/run/checkpoint/checkpoint.h"
#include "train/run/loop/continuation.h"
#include "train/run/loop/step.h"
#include "train/run/loop/train_state.h"
#include "train/run/records/metrics.h"
#include "train/study/compare/row.h"
#include "train/study/compare/runs_csv.h"
#include "train/system/files.h"
#include "train/system/number.h"

namespace difftape::study {
namespace {

namespace fs = std::filesystem;
using run::RunState;

/// Reads the state of a run. A run that cannot be read does not stop the others.
void read_state(const fs::path& dir, RunProgress& progress) {
  try {
    const run::RunStatus status = run::read_status(dir);
    progress.state = run::is_complete(status.state) ? status.state : RunState::queued;
    progress.done = progress.step = progress.complete() ? status.step : run::newest_step(dir);
  } catch (const Error& error) {
    progress.state = RunState::failed;
    if (!progress.selected) return;
    progress.exit = system::exit_of(error);
    progress.error =
        fmt::format("{}; or remove {} to train it from the start", error.what(), dir.string());
  }
}

}  // namespace

RunProgress inspect(const SweepRun& run) {
  const fs::path dir = run.config().run.out;
  RunProgress progress;
  progress.selected = run.selected;
  std::error_code ignored;  // creating the run reports an unusable path
  if (run::may_begin_in(dir)) {
    throw_if<OutputError>(run.selected && system::DirectoryLock::is_held(dir),
                          "{}: another process is training here; wait for it, or choose another "
                          "directory with --out",
                          dir.string());
    return progress;
  }
  const std::string other = run::why_other_run(dir, run.config());
  if (!other.empty()) {
    if (!run.selected) return progress;
    throw OutputError(
        fmt::format("{} already exists and does not contain this run: {}; remove it, or choose "
                    "another directory with --out, or --out auto",
                    dir.string(), other));
  }
  progress.on_disk = fs::exists(dir / "status.json", ignored);
  read_state(dir, progress);
  return progress;
}

void read_last_step(const fs::path& run_dir, RunProgress& progress) {
  const auto last = run::last_logged(run_dir / "metrics.jsonl");
  if (!last) return;
  progress.step = last->step;
  progress.loss = last->loss;
}

void finish(const fs::path& run_dir, const system::ExitStatus& exit_status, int sent_signal,
            const std::string& message, RunProgress& progress) {
  std::error_code ignored;
  progress.on_disk = fs::exists(run_dir / "status.json", ignored);
  if (progress.on_disk) read_last_step(run_dir, progress);
  const bool obeyed = exit_status.signal != 0 && exit_status.signal == sent_signal;
  const system::Exit exit =
      obeyed ? (sent_signal == SIGINT ? system::Exit::sigint : system::Exit::sigterm)
      : exit_status.signal != 0 ? system::Exit::stopped_early
                                : static_cast<system::Exit>(exit_status.exit);
  if (exit == system::Exit::ok || exit == system::Exit::diverged) {
    progress.state = exit == system::Exit::ok ? RunState::finished : RunState::diverged;
    return;
  }
  const bool stopped = exit == system::Exit::sigint || exit == system::Exit::sigterm;
  progress.state = stopped ? RunState::stopped : RunState::failed;
  progress.exit = exit;
  progress.error = stopped ? fmt::format("stopped at step {}", progress.step) : message;
}

void StatusTable::line(std::string_view text) {
  erase();
  console_ << text << '\n' << std::flush;
}

void StatusTable::draw(const std::vector<std::string>& lines) {
  if (!style_.tty) return;
  erase();
  const auto width = static_cast<std::size_t>(std::max(style_.width - 1, 1));
  for (const std::string& text : lines) console_ << text.substr(0, width) << '\n';
  console_ << std::flush;
  drawn_ = lines.size();
}

void StatusTable::erase() {
  if (drawn_ > 0) console_ << fmt::format("\x1b[{}A\r\x1b[J", drawn_);
  drawn_ = 0;
}

std::string describe_counts(std::span<const RunProgress> runs, double eta) {
  const auto count = [&](auto... states) {
    return std::count_if(runs.begin(), runs.end(), [&](const RunProgress& run) {
      return run.selected && ((run.state == states) || ...);
    });
  };
  const auto selected =
      std::count_if(runs.begin(), runs.end(), [](const auto& r) { return r.selected; });
  std::string text =
      fmt::format("{}/{} done", count(RunState::finished, RunState::diverged), selected);
  for (const RunState state : {RunState::running, RunState::queued, RunState::diverged,
                               RunState::stopped, RunState::failed}) {
    if (const auto n = count(state); n > 0) text += fmt::format("  {} {}", n, to_string(state));
  }
  return eta > 0 ? text + "  ETA " + system::describe_duration(eta) : text;
}

std::string describe_result(const fs::path& run_dir, const RunProgress& progress) {
  if (!progress.complete()) {
    return progress.state == RunState::stopped ? progress.error : "failed: " + progress.error;
  }
  try {
    const Row run = load_run(run_dir);
    const double loss = run.number("val_loss");
    return describe_state(run.status) +
           (std::isfinite(loss) ? fmt::format(", val {:.4f}", loss) : "") +
           fmt::format(", {:.0f} tokens/s", run.number("tokens_per_sec"));
  } catch (const Error&) {
    return std::string(to_string(progress.state));  // damaged since then; the report lists it
  }
}

double sweep_eta(std::span<const SweepRun> runs, std::span<const RunProgress> progress,
                 double elapsed) {
  double made = 0, left = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunProgress& run = progress[i];
    const double flops = flops_per_step(runs[i].config());
    made += flops * static_cast<double>(run.step - run.done);
    if (run.selected && (run.state == RunState::queued || run.state == RunState::running)) {
      left += flops * static_cast<double>(runs[i].config().train.steps - run.step);
    }
  }
  return made > 0 ? elapsed * left / made : std::nan("");
}

double flops_per_step(const run::Config& config) {
  return model_cost(config.model, config.data.seq_len).train_flops_per_token *
         static_cast<double>(tokens_per_step(config));
}

SweepRuns::SweepRuns(const SweepConfig& sweep) : sweep_(&sweep), rows_(sweep.runs.size()) {
  const fs::path path = fs::path(sweep.out) / kRunsFile;
  std::error_code ignored;
  if (!fs::exists(path, ignored) || (fs::is_regular_file(path, ignored) && is_runs_csv(path)))
    return;
  throw OutputError(fmt::format(
      "{} already exists and does not contain the runs of a sweep; move it, or choose another "
      "directory with --out",
      path.string()));
}

void SweepRuns::update(std::size_t i, const RunProgress& progress) {
  const run::Config& config = sweep_->runs[i].config();
  Row row = planned_row(config, config.run.out);
  if (progress.on_disk && progress.state != RunState::queued) {
    try {
      row = load_run(config.run.out);
    } catch (const Error&) {  // the report lists it; its state is "failed"
    }
  }
  row.status.state = progress.state;
  row.facts["baseline"] = sweep_->baseline;
  rows_[i] = std::move(row);
}

void SweepRuns::write() const {
  system::replace_text(fs::path(sweep_->out) / kRunsFile, runs_csv(rows_, sweep_->out));
}

}  // namespace difftape::study
