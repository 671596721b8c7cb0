#include "train/study/sweep/pool.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include "train/run/records/run_files.h"

namespace difftape::study {
namespace {

constexpr std::chrono::milliseconds kPoll(20);
constexpr double kRedrawSeconds = 0.5;

}  // namespace

Pool::Pool(const SweepConfig& sweep, std::vector<RunProgress>& progress, const Layout& layout,
           std::vector<std::string> command, std::string program)
    : sweep_(sweep),
      progress_(progress),
      layout_(layout),
      command_(std::move(command)),
      program_(std::move(program)),
      slots_(static_cast<std::size_t>(layout.jobs())),
      started_(run::Progress::steady_seconds()) {}

void Pool::train(const run::StopRequest& stop, StatusTable& table, const Changed& changed) {
  bool more = true;
  while (true) {
    const system::Exit signal = stop.received();
    for (int slot = 0; signal == system::Exit::ok && more && slot < layout_.jobs(); ++slot) {
      if (!slots_[static_cast<std::size_t>(slot)].worker) more = start_next(slot, table, changed);
    }
    if (signal != system::Exit::ok && sent_signal_ == 0) {
      table.line("stopping: the runs under way save their state");
      sent_signal_ = signal == system::Exit::sigint ? SIGINT : SIGTERM;
      for (Slot& slot : slots_) {
        if (slot.worker) slot.worker->signal(sent_signal_);
      }
    }
    if (idle() && (signal != system::Exit::ok || !more)) break;
    std::this_thread::sleep_for(kPoll);
    finish_ended(table, changed);
    redraw(table);
  }
  table.draw({});
}

/// False if no run is left.
bool Pool::start_next(int index, StatusTable& table, const Changed& changed) {
  for (; next_ < progress_.size(); ++next_) {
    RunProgress& progress = progress_[next_];
    if (!progress.selected || progress.phase != Phase::queued) continue;
    const run::Config& config = sweep_.runs[next_].config();
    Slot& slot = slots_[static_cast<std::size_t>(index)];
    slot.run = next_++;
    try {
      if (progress.partial) run::remove_partial_start(config.run.out);
      const Job job{config, 0, config.run.out, progress.on_disk, command_};
      slot.worker = std::make_unique<Worker>(job, layout_, index, program_);
    } catch (const Error& error) {
      progress.phase = Phase::failed;
      progress.exit = system::exit_of(error);
      progress.error = error.what();
      table.line(fmt::format("{}: failed: {}", config.run.name, progress.error));
      changed(slot.run);
      return true;
    }
    progress.phase = Phase::running;
    table.line(progress.on_disk
                   ? fmt::format("{}: continues at step {}", config.run.name, progress.done)
                   : fmt::format("{}: started", config.run.name));
    changed(slot.run);
    return true;
  }
  return false;
}

void Pool::finish_ended(StatusTable& table, const Changed& changed) {
  for (Slot& slot : slots_) {
    if (!slot.worker || !slot.worker->poll()) continue;
    const system::Ending ending = *slot.worker->poll();
    const std::string message = slot.worker->last_words();
    slot.worker.reset();
    const run::Config& config = sweep_.runs[slot.run].config();
    RunProgress& progress = progress_[slot.run];
    finish(config.run.out, ending, sent_signal_, message, progress);
    table.line(fmt::format("{}: {}", config.run.name, describe_result(config.run.out, progress)));
    changed(slot.run);
  }
}

void Pool::redraw(StatusTable& table) {
  const double now = run::Progress::steady_seconds();
  if (!table.live() || now - drawn_ < kRedrawSeconds) return;
  drawn_ = now;
  std::vector<std::string> lines{""};
  for (const Slot& slot : slots_) {
    if (!slot.worker) continue;
    const run::Config& config = sweep_.runs[slot.run].config();
    RunProgress& progress = progress_[slot.run];
    read_last_step(config.run.out, progress);
    lines.push_back(fmt::format("  {}  step {}/{}  loss {:.4f}", config.run.name, progress.step,
                                config.train.steps, progress.loss));
  }
  lines.front() = describe_counts(progress_, sweep_eta(sweep_.runs, progress_, now - started_));
  table.draw(lines);
}

bool Pool::idle() const {
  return std::none_of(slots_.begin(), slots_.end(),
                      [](const Slot& slot) { return slot.worker != nullptr; });
}

}  // namespace difftape::study
