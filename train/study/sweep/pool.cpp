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
      places_(static_cast<std::size_t>(layout.jobs())),
      started_(run::Progress::steady_seconds()) {}

void Pool::train(const run::StopRequest& stop, StatusTable& table, const Changed& changed) {
  bool more = true;
  while (true) {
    const system::Exit signal = stop.received();
    for (int place = 0; signal == system::Exit::ok && more && place < layout_.jobs(); ++place) {
      if (!places_[static_cast<std::size_t>(place)].worker)
        more = start_next(place, table, changed);
    }
    if (signal != system::Exit::ok && told_ == 0) {
      table.line("stopping: the runs under way save their state");
      told_ = signal == system::Exit::sigint ? SIGINT : SIGTERM;
      for (Place& place : places_) {
        if (place.worker) place.worker->signal(told_);
      }
    }
    if (idle() && (signal != system::Exit::ok || !more)) break;
    std::this_thread::sleep_for(kPoll);
    conclude_ended(table, changed);
    redraw(table);
  }
  table.draw({});
}

/// False if no run is left.
bool Pool::start_next(int place, StatusTable& table, const Changed& changed) {
  for (; next_ < progress_.size(); ++next_) {
    RunProgress& progress = progress_[next_];
    if (!progress.chosen || progress.phase != Phase::queued) continue;
    const run::Config& config = sweep_.runs[next_].config();
    Place& at = places_[static_cast<std::size_t>(place)];
    at.run = next_++;
    try {
      if (progress.begun) run::remove_partial_start(config.run.out);
      const Job job{config, 0, config.run.out, progress.on_disk, command_};
      at.worker = std::make_unique<Worker>(job, layout_, place, program_);
    } catch (const Error& error) {
      progress.phase = Phase::failed;
      progress.exit = system::exit_of(error);
      progress.words = error.what();
      table.line(fmt::format("{}: failed: {}", config.run.name, progress.words));
      changed(at.run);
      return true;
    }
    progress.phase = Phase::running;
    table.line(progress.on_disk
                   ? fmt::format("{}: continues at step {}", config.run.name, progress.done)
                   : fmt::format("{}: started", config.run.name));
    changed(at.run);
    return true;
  }
  return false;
}

void Pool::conclude_ended(StatusTable& table, const Changed& changed) {
  for (Place& place : places_) {
    if (!place.worker || !place.worker->poll()) continue;
    const system::Ending ending = *place.worker->poll();
    const std::string words = place.worker->last_words();
    place.worker.reset();
    const run::Config& config = sweep_.runs[place.run].config();
    RunProgress& progress = progress_[place.run];
    conclude(config.run.out, ending, told_, words, progress);
    table.line(fmt::format("{}: {}", config.run.name, describe_result(config.run.out, progress)));
    changed(place.run);
  }
}

void Pool::redraw(StatusTable& table) {
  const double now = run::Progress::steady_seconds();
  if (!table.live() || now - drawn_ < kRedrawSeconds) return;
  drawn_ = now;
  std::vector<std::string> lines{""};
  for (const Place& place : places_) {
    if (!place.worker) continue;
    const run::Config& config = sweep_.runs[place.run].config();
    RunProgress& progress = progress_[place.run];
    follow(config.run.out, progress);
    lines.push_back(fmt::format("  {}  step {}/{}  loss {:.4f}", config.run.name, progress.step,
                                config.train.steps, progress.loss));
  }
  lines.front() = describe_counts(progress_, sweep_eta(sweep_.runs, progress_, now - started_));
  table.draw(lines);
}

bool Pool::idle() const {
  return std::none_of(places_.begin(), places_.end(),
                      [](const Place& place) { return place.worker != nullptr; });
}

}  // namespace difftape::study
