#include "train/study/sweep/worker.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <thread>

#include "train/run/config/writer.h"
#include "train/run/loop/step.h"
#include "train/run/loop/trainer.h"
#include "train/run/records/progress.h"
#include "train/run/records/run_files.h"
#include "train/stats/descriptive.h"

namespace difftape::study {
namespace {

using Json = nlohmann::json;

constexpr int kFewestSteps = 3;  ///< that are timed
constexpr std::chrono::milliseconds kPoll(10);

StepTime measure(const run::Config& config, double seconds) {
  const double begin = run::Progress::steady_seconds();
  run::TrainState state(config);
  StepTime time{.start = run::Progress::steady_seconds() - begin,
                .val_batches = state.data->val_batches()};
  train_step(state);  // generates the kernels and fills the pool
  std::vector<double> steps;
  const double first = run::Progress::steady_seconds();
  while (steps.size() < kFewestSteps || run::Progress::steady_seconds() - first < seconds) {
    steps.push_back(train_step(state).seconds);
  }
  time.step = stats::quantile(steps, 0.5);
  return time;
}

template <class F>
auto parse(const std::string& text, F&& use) {
  try {
    return use(Json::from_cbor(text));
  } catch (const Json::exception& error) {
    throw DataError(fmt::format("not a text between a sweep and its workers: {}", error.what()));
  }
}

/// A file without a name that holds `text`.
system::File file_of(const std::string& text) {
  system::File file(std::tmpfile());
  if (!file || std::fwrite(text.data(), 1, text.size(), file.get()) != text.size() ||
      std::fflush(file.get()) != 0) {
    throw OutputError(fmt::format("cannot write a temporary file: {}", std::strerror(errno)));
  }
  std::rewind(file.get());
  return file;
}

}  // namespace

std::string to_text(const Job& job) {
  // CBOR, because paths and command lines are bytes that need not be UTF-8
  const auto bytes = Json::to_cbor(Json{{"config", to_yaml(job.config)},
                                        {"measure_seconds", job.measure_seconds},
                                        {"out", job.out.string()},
                                        {"resume", job.resume},
                                        {"command", job.command}});
  return {bytes.begin(), bytes.end()};
}

std::string to_text(const StepTime& time) {
  const auto bytes = Json::to_cbor(
      Json{{"start", time.start}, {"step", time.step}, {"val_batches", time.val_batches}});
  return {bytes.begin(), bytes.end()};
}

Job read_job(const std::string& text) {
  return parse(text, [](const Json& json) {
    Job job;
    job.config = run::config_from_yaml(json.at("config").get<std::string>(), "the sweep");
    json.at("measure_seconds").get_to(job.measure_seconds);
    job.out = json.at("out").get<std::string>();
    json.at("resume").get_to(job.resume);
    json.at("command").get_to(job.command);
    return job;
  });
}

StepTime read_step_time(const std::string& text) {
  return parse(text, [](const Json& json) {
    return StepTime{json.at("start").get<double>(), json.at("step").get<double>(),
                    json.at("val_batches").get<Index>()};
  });
}

system::Exit work(std::istream& in, std::ostream& out) {
  const Job job = read_job({std::istreambuf_iterator<char>(in), {}});
  if (job.measure_seconds > 0) {
    out << to_text(measure(job.config, job.measure_seconds)) << std::flush;
    return system::Exit::ok;
  }
  run::TrainRequest request;
  request.out = job.out;
  request.resume = job.resume;
  request.command = job.command;
  return train(job.config, request);
}

Worker::Worker(const Job& job, const Layout& layout, int slot, const std::string& program)
    : input_(file_of(to_text(job))), output_(file_of("")), errors_(file_of("")) {
  const auto i = static_cast<size_t>(slot);
  system::ChildSetup setup{fileno(input_.get()), fileno(output_.get()), fileno(errors_.get())};
  setup.program = program;
  setup.environment = {{"OMP_NUM_THREADS", fmt::format("{}", layout.threads[i])}};
  setup.cores = layout.cores[i];
  setup.apart = true;
  child_.emplace(std::vector<std::string>{"difftape", "worker"}, setup);
}

std::string Worker::error_message() {
  const system::ExitStatus& exit_status = child_->wait();
  std::string text = system::contents_of(errors_.get());
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (text.starts_with("difftape: ")) text.erase(0, text.find(' ') + 1);
  if (exit_status.signal == 0 && !text.empty()) return text;
  return exit_status.str() + (text.empty() ? "" : ": " + system::last_line(text));
}

std::optional<StepTime> measure_step(const run::Config& config, const Layout& layout,
                                     double seconds, double limit, const std::string& program) {
  Job job;
  job.config = config;
  job.measure_seconds = seconds;
  const double begin = run::Progress::steady_seconds();
  std::vector<std::unique_ptr<Worker>> workers;
  for (int slot = 0; slot < layout.jobs(); ++slot) {
    workers.push_back(std::make_unique<Worker>(job, layout, slot, program));
  }
  StepTime mean;
  for (const auto& worker : workers) {
    while (!worker->poll()) {
      if (run::Progress::steady_seconds() - begin > limit) return std::nullopt;
      std::this_thread::sleep_for(kPoll);
    }
    if (worker->poll()->signal != 0 || worker->poll()->exit != 0) return std::nullopt;
    const StepTime time = read_step_time(worker->output());
    mean.start += time.start / layout.jobs();
    mean.step += time.step / layout.jobs();
    mean.val_batches = time.val_batches;  // the same data
  }
  return mean;
}

namespace {

constexpr std::chrono::milliseconds kPoolPoll(20);
constexpr double kRedrawSeconds = 0.5;

}  // namespace

Pool::Pool(const SweepConfig& sweep, std::vector<RunProgress>& progress, const Layout& layout,
           std::vector<std::string> command, std::string program, Takes takes)
    : sweep_(sweep),
      progress_(progress),
      layout_(layout),
      command_(std::move(command)),
      program_(std::move(program)),
      takes_(std::move(takes)),
      slots_(static_cast<std::size_t>(layout.jobs())),
      started_(run::Progress::steady_seconds()) {}

void Pool::train(const system::StopRequest& stop, StatusTable& table, const Changed& changed) {
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
    std::this_thread::sleep_for(kPoolPoll);
    finish_ended(table, changed);
    redraw(table);
  }
  table.draw({});
}

/// False if no run is left.
bool Pool::start_next(int index, StatusTable& table, const Changed& changed) {
  for (; next_ < progress_.size(); ++next_) {
    RunProgress& progress = progress_[next_];
    const run::Config& config = sweep_.runs[next_].config();
    if (!progress.waits() || (takes_ && !takes_(config.run.name))) continue;
    Slot& slot = slots_[static_cast<std::size_t>(index)];
    slot.run = next_++;
    try {
      if (progress.partial) run::remove_partial_start(config.run.out);
      const Job job{config, 0, config.run.out, progress.on_disk, command_};
      slot.worker = std::make_unique<Worker>(job, layout_, index, program_);
    } catch (const Error& error) {
      progress.state = run::RunState::failed;
      progress.exit = system::exit_of(error);
      progress.error = error.what();
      table.line(fmt::format("{}: failed: {}", config.run.name, progress.error));
      changed(slot.run);
      return true;
    }
    progress.state = run::RunState::running;
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
    const system::ExitStatus exit_status = *slot.worker->poll();
    const std::string message = slot.worker->error_message();
    slot.worker.reset();
    const run::Config& config = sweep_.runs[slot.run].config();
    RunProgress& progress = progress_[slot.run];
    finish(config.run.out, exit_status, sent_signal_, message, progress);
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
