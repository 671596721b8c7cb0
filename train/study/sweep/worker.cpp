#include "train/study/sweep/worker.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "core/parallel.h"
#include "train/run/config/writer.h"
#include "train/run/loop/step_memory.h"
#include "train/run/loop/trainer.h"
#include "train/run/records/progress.h"
#include "train/run/records/run_files.h"
#include "train/system/child.h"
#include "train/system/files.h"
#include "train/system/memory.h"

namespace difftape::study {
namespace {

using Json = nlohmann::json;

/// Returns an unnamed temporary file that contains `text`.
system::File file_of(const std::string& text) {
  system::File file(std::tmpfile());
  if (!file || std::fwrite(text.data(), 1, text.size(), file.get()) != text.size() ||
      std::fflush(file.get()) != 0) {
    throw OutputError(fmt::format("cannot write a temporary file: {}", std::strerror(errno)));
  }
  std::rewind(file.get());
  return file;
}

/// Encodes a run to train as CBOR, because paths and command lines need not be UTF-8.
std::string to_text(const run::Config& config, const run::TrainRequest& request) {
  const auto bytes = Json::to_cbor(Json{{"config", to_yaml(config)},
                                        {"out", request.out.string()},
                                        {"resume", request.resume},
                                        {"command", request.command}});
  return {bytes.begin(), bytes.end()};
}

constexpr std::chrono::milliseconds kPoolPoll(20);
constexpr double kRedrawSeconds = 0.5;

/// Runs one job in a child process that is pinned to the cores of a slot of a layout. The child is
/// detached from the terminal, so that an interrupt reaches it once, from the sweep. The destructor
/// kills it.
class Worker {
 public:
  /// Trains the run that `job` encodes. Throws MissingInput or OutputError if `program` cannot be
  /// started.
  Worker(const std::string& job, const Layout& layout, std::size_t slot, const std::string& program)
      : input_(file_of(job)), output_(file_of("")), errors_(file_of("")) {
    system::ChildSetup setup{fileno(input_.get()), fileno(output_.get()), fileno(errors_.get())};
    setup.program = program;
    setup.environment = {{"OMP_NUM_THREADS", fmt::format("{}", layout.threads[slot])}};
    setup.cores = layout.cores[slot];
    setup.apart = true;
    child_.emplace(std::vector<std::string>{"difftape", "worker"}, setup);
  }

  const std::optional<system::ExitStatus>& poll() { return child_->poll(); }
  void signal(int number) { child_->signal(number); }

  /// Returns why the worker failed: its last message, or the signal that killed it.
  std::string error_message() {
    const system::ExitStatus& exit_status = child_->wait();
    std::string text = system::contents_of(errors_.get());
    while (!text.empty() && text.back() == '\n') text.pop_back();
    if (text.starts_with("difftape: ")) text.erase(0, text.find(' ') + 1);
    if (exit_status.signal == 0 && !text.empty()) return text;
    return exit_status.str() + (text.empty() ? "" : ": " + system::last_line(text));
  }

 private:
  system::File input_, output_, errors_;
  std::optional<system::Child> child_;
};

/// The workers of a sweep.
class Pool {
 public:
  Pool(const SweepConfig& sweep, const SweepRequest& request, const Layout& layout,
       std::vector<RunProgress>& progress, StatusTable& table, const RunChanged& changed)
      : sweep_(sweep),
        request_(request),
        layout_(layout),
        progress_(progress),
        table_(table),
        changed_(changed),
        slots_(static_cast<std::size_t>(layout.jobs())) {}

  void train(const system::StopRequest& stop) {
    bool more = true;
    while (true) {
      const system::Exit signal = stop.received();
      for (std::size_t i = 0; signal == system::Exit::ok && more && i < slots_.size(); ++i) {
        if (!slots_[i].worker) more = start_next(i);
      }
      if (signal != system::Exit::ok && sent_signal_ == 0) {
        table_.line("stopping; active runs save their state");
        sent_signal_ = signal == system::Exit::sigint ? SIGINT : SIGTERM;
        for (Slot& slot : slots_) {
          if (slot.worker) slot.worker->signal(sent_signal_);
        }
      }
      if (idle() && (signal != system::Exit::ok || !more)) break;
      std::this_thread::sleep_for(kPoolPoll);
      finish_ended();
      redraw();
    }
    table_.draw({});
  }

 private:
  struct Slot {
    std::unique_ptr<Worker> worker;  ///< null: free
    std::size_t run = 0;
  };

  /// Starts the next queued run in a free slot. Returns false if no run is left.
  bool start_next(std::size_t index) {
    for (; next_ < progress_.size(); ++next_) {
      RunProgress& progress = progress_[next_];
      const SweepRun& run = sweep_.runs[next_];
      if (!progress.waits()) continue;
      Slot& slot = slots_[index];
      slot.run = next_++;
      std::string what =
          progress.on_disk ? fmt::format("resumes at step {}", progress.done) : "started";
      try {
        const std::string job = to_text(run.config(), train_request(run, progress, request_));
        slot.worker = std::make_unique<Worker>(job, layout_, index, request_.program);
        progress.state = run::RunState::running;
      } catch (const Error& error) {
        progress.state = run::RunState::failed;
        progress.exit = system::exit_of(error);
        progress.error = error.what();
        what = "failed: " + progress.error;
      }
      table_.line(fmt::format("{}: {}", run.config().run.name, what));
      changed_(slot.run);
      return true;
    }
    return false;
  }

  void finish_ended() {
    for (Slot& slot : slots_) {
      if (!slot.worker || !slot.worker->poll()) continue;
      const system::ExitStatus exit_status = *slot.worker->poll();
      const std::string message = slot.worker->error_message();
      slot.worker.reset();
      const run::Config& config = sweep_.runs[slot.run].config();
      RunProgress& progress = progress_[slot.run];
      finish(config.run.out, exit_status, sent_signal_, message, progress);
      table_.line(
          fmt::format("{}: {}", config.run.name, describe_result(config.run.out, progress)));
      show_warnings(config.run.out);
      changed_(slot.run);
    }
  }

  /// Prints the warnings of a run that no run before had, such as that it validates on its training
  /// data.
  void show_warnings(const std::filesystem::path& run) {
    if (!system::is_there(run / "stdout.log")) return;
    system::for_each_line(run / "stdout.log", [this](std::string_view line, std::size_t) {
      if (line.starts_with("warning: ") && warned_.emplace(line).second)
        table_.line(std::string(line));
    });
  }

  void redraw() {
    const double now = run::Progress::steady_seconds();
    if (!table_.live() || now - drawn_ < kRedrawSeconds) return;
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
    table_.draw(lines);
  }

  bool idle() const {
    return std::ranges::none_of(slots_, [](const Slot& slot) { return slot.worker != nullptr; });
  }

  const SweepConfig& sweep_;
  const SweepRequest& request_;
  const Layout& layout_;
  std::vector<RunProgress>& progress_;
  StatusTable& table_;
  std::set<std::string> warned_;
  const RunChanged& changed_;
  std::vector<Slot> slots_;
  std::size_t next_ = 0;
  int sent_signal_ = 0;  ///< the signal sent to the workers; 0: none
  double started_ = run::Progress::steady_seconds(), drawn_ = 0;
};

/// Cores per worker without --jobs. Threads of a step wait for each other after every op; processes
/// that train different runs never wait.
constexpr std::size_t kCoresOfWorker = 1;

/// Returns the numbers of the cores that this process may use; nothing if they are not known.
std::vector<int> usable_cores() {
  std::vector<int> cores;
  cpu_set_t set;
  const bool known = sched_getaffinity(0, sizeof set, &set) == 0;
  for (int core = 0; known && core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

/// Returns the keys that determine the memory of a step, with their values.
std::string sizes_of(const run::Config& config) {
  std::string text;
  for (const auto& [key, value] : run::flat_config(config)) {
    const bool decides = key.starts_with("model.") || key.starts_with("data.") ||
                         key.starts_with("train.") || key == "optim.name";
    if (decides) text += key + ": " + value + "\n";
  }
  return text;
}

/// Returns the number of workers for which the memory suffices. Throws ConfigError if it does not
/// suffice for `jobs`.
std::size_t workers_with_memory(std::span<const run::Config* const> runs, int jobs) {
  const std::optional<std::uint64_t> free = system::free_memory();
  Index largest = 1;
  std::set<std::string> known;  // runs that differ in seed or learning rate need the same memory
  const Index processes = std::clamp<Index>(jobs, 1, std::ssize(runs));
  for (const run::Config* config : runs) {
    if (!known.insert(sizes_of(*config)).second) continue;
    run::require_memory(*config, processes, free);
    largest = std::max(largest, run::step_memory(*config).total());
  }
  return free ? std::max<std::size_t>(1, *free / static_cast<std::uint64_t>(largest)) : runs.size();
}

}  // namespace

run::TrainRequest train_request(const SweepRun& run, const RunProgress& progress,
                                const SweepRequest& request) {
  return {.out = run.config().run.out, .resume = progress.on_disk, .command = request.command};
}

system::Exit work(std::istream& in) {
  run::TrainRequest request;
  std::string config;
  try {
    const Json job = Json::from_cbor(std::string(std::istreambuf_iterator<char>(in), {}));
    config = job.at("config").get<std::string>();
    request.out = job.at("out").get<std::string>();
    request.resume = job.at("resume").get<bool>();
    request.command = job.at("command").get<std::vector<std::string>>();
  } catch (const Json::exception& error) {
    throw DataError(fmt::format("standard input is not a job of a sweep: {}", error.what()));
  }
  return train(run::config_from_yaml(config, "the sweep"), request);
}

void train_in_workers(const SweepConfig& sweep, const SweepRequest& request, const Layout& layout,
                      const system::StopRequest& stop, std::vector<RunProgress>& progress,
                      StatusTable& table, const RunChanged& changed) {
  Pool(sweep, request, layout, progress, table, changed).train(stop);
}

Layout make_layout(int jobs, const std::vector<int>& cores, int most_threads) {
  Layout layout;
  const int count = static_cast<int>(cores.size());
  for (int i = 0; i < jobs; ++i) {
    std::vector<int> own(cores.begin() + i * count / jobs, cores.begin() + (i + 1) * count / jobs);
    if (own.empty() && count > 0) own = {cores[static_cast<size_t>(i % count)]};
    layout.threads.push_back(std::clamp(static_cast<int>(own.size()), 1, most_threads));
    layout.cores.push_back(std::move(own));
  }
  return layout;
}

Layout choose_layout(std::span<const run::Config* const> left, int jobs) {
  const std::size_t with_memory = workers_with_memory(left, jobs);
  const int threads = num_threads();
  std::vector<int> cores = usable_cores();
  std::size_t workers = static_cast<std::size_t>(jobs);
  if (jobs == 0) {
    cores.resize(std::min(cores.size(), static_cast<std::size_t>(threads)));
    workers = cores.empty() ? static_cast<std::size_t>(threads) : cores.size() / kCoresOfWorker;
    workers = std::min(with_memory, workers);
  }
  return make_layout(static_cast<int>(std::min(workers, left.size())), cores, threads);
}

}  // namespace difftape::study
