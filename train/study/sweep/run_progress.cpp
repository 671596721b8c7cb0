#include "train/study/sweep/run_progress.h"

#include <array>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "train/run/loop/restore.h"
#include "train/run/records/run_files.h"

namespace difftape::study {
namespace {

namespace fs = std::filesystem;

/// Enough for the last line of metrics.jsonl, with the numbers of every parameter.
constexpr std::streamoff kTail = 1 << 18;

Phase phase_of(run::RunState state) {
  switch (state) {
    case run::RunState::finished:
      return Phase::finished;
    case run::RunState::diverged:
      return Phase::diverged;
    default:
      return Phase::queued;
  }
}

std::string tail_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : 0;
  std::string text(static_cast<size_t>(std::min(size, kTail)), '\0');
  file.seekg(size - static_cast<std::streamoff>(text.size()));
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  return text;
}

/// The state of a run of this sweep. One that cannot be read is no reason not to train the others.
void read_state(const fs::path& dir, RunProgress& progress) {
  try {
    const run::RunStatus status = run::read_status(dir);
    progress.phase = phase_of(status.state);
    progress.done = progress.step = progress.complete() ? status.step : run::resume_step(dir);
  } catch (const Error& error) {
    progress.phase = Phase::failed;
    if (!progress.selected) return;
    progress.exit = system::exit_of(error);
    progress.error =
        fmt::format("{}; remove {} to train it from the start", error.what(), dir.string());
  }
}

}  // namespace

std::string_view name_of(Phase phase) {
  constexpr std::array<std::string_view, 6> kNames{"queued",   "running", "finished",
                                                   "diverged", "stopped", "failed"};
  return kNames[static_cast<size_t>(phase)];
}

RunProgress inspect(const SweepRun& run) {
  const fs::path dir = run.config().run.out;
  RunProgress progress;
  progress.selected = run.chosen;
  std::error_code ignored;  // what is wrong with the place is said when the run is created
  if (!fs::exists(dir, ignored) || fs::is_empty(dir, ignored)) return progress;
  const bool same = same_run(dir, run.config());
  if (run::is_partial_start(dir) && (same || !fs::exists(dir / "config.yaml", ignored))) {
    progress.partial = true;
    return progress;
  }
  if (!same) {
    if (!run.chosen) return progress;
    throw OutputError(fmt::format(
        "{} exists and holds something else than this arm; nothing is overwritten: remove it, or "
        "choose another directory with --out",
        dir.string()));
  }
  progress.on_disk = fs::exists(dir / "status.json", ignored);
  read_state(dir, progress);
  return progress;
}

void read_last_step(const fs::path& run_dir, RunProgress& progress) {
  const std::string text = tail_of(run_dir / "metrics.jsonl");
  const size_t end = text.rfind('\n');
  if (end == std::string::npos || end == 0) return;
  const size_t before = text.rfind('\n', end - 1);
  const size_t begin = before == std::string::npos ? 0 : before + 1;
  const auto line = nlohmann::json::parse(text.substr(begin, end - begin), nullptr, false);
  if (!line.is_object()) return;
  progress.step = line.value("step", progress.step);
  const auto loss = line.find("train/loss");
  if (loss != line.end() && loss->is_number()) progress.loss = loss->get<double>();
}

void finish(const fs::path& run_dir, const system::Ending& ending, int sent_signal,
            const std::string& message, RunProgress& progress) {
  std::error_code ignored;
  progress.on_disk = fs::exists(run_dir / "status.json", ignored);
  if (progress.on_disk) read_last_step(run_dir, progress);
  const bool obeyed = ending.signal != 0 && ending.signal == sent_signal;
  const system::Exit exit =
      obeyed               ? (sent_signal == SIGINT ? system::Exit::sigint : system::Exit::sigterm)
      : ending.signal != 0 ? system::Exit::stopped_early
                           : static_cast<system::Exit>(ending.exit);
  if (exit == system::Exit::ok || exit == system::Exit::diverged) {
    progress.phase = exit == system::Exit::ok ? Phase::finished : Phase::diverged;
    return;
  }
  const bool stopped = exit == system::Exit::sigint || exit == system::Exit::sigterm;
  progress.phase = stopped ? Phase::stopped : Phase::failed;
  progress.exit = exit;
  progress.error = stopped ? fmt::format("stopped at step {}", progress.step) : message;
}

}  // namespace difftape::study
