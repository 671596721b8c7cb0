#include "bench/interleaved.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench/measure.h"
#include "core/error.h"
#include "core/platform.h"

namespace difftape::bench {

namespace {

void make_pipe(int (&ends)[2], const std::string& program) {
  if (pipe2(ends, O_CLOEXEC) == 0) return;
  throw MissingInput(fmt::format("cannot start {}: {}", program, std::strerror(errno)));
}

}  // namespace

Process::Process(const std::vector<std::string>& command) : errors_(std::tmpfile()) {
  // Writing to a candidate that has ended must not end the benchmark.
  std::signal(SIGPIPE, SIG_IGN);
  if (!errors_)
    throw MissingInput(fmt::format("cannot start {}: no temporary file", command.front()));
  int to_child[2], from_child[2];
  make_pipe(to_child, command.front());
  const system::File child_input(fdopen(to_child[0], "r"));
  input_.reset(fdopen(to_child[1], "w"));
  make_pipe(from_child, command.front());
  const system::File child_output(fdopen(from_child[1], "w"));
  output_.reset(fdopen(from_child[0], "r"));
  child_.emplace(command, system::ChildSetup{to_child[0], from_child[1], fileno(errors_.get())});
}

Process::~Process() {
  input_.reset();
  for (int tenths = 0; child_ && !child_->poll() && tenths < 50; ++tenths) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

void Process::kill() { child_->signal(SIGKILL); }

void Process::write_line(const std::string& line) {
  std::fprintf(input_.get(), "%s\n", line.c_str());
  std::fflush(input_.get());
}

std::optional<std::string> Process::read_line() {
  std::string line;
  for (int c = 0; (c = std::getc(output_.get())) != EOF;) {
    if (c == '\n') return line;
    line.push_back(static_cast<char>(c));
  }
  return std::nullopt;
}

std::string Process::how_it_ended() {
  input_.reset();
  output_.reset();
  const std::string end = child_->wait().str();
  const std::string line = system::last_line(system::contents_of(errors_.get()));
  return line.empty() ? end : fmt::format("{}: {}", end, line);
}

namespace {

using nlohmann::json;

/// The reason why a candidate is left out.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A running candidate and its measurements.
class Runner {
 public:
  explicit Runner(const Candidate& candidate)
      : process_(candidate.command), result_{.candidate = candidate} {
    const json ready = answer();
    result_.version = ready.value("version", "");
    result_.idle_bytes = ready.value("idle_bytes", 0.0);
    if (ready.contains("parameters")) result_.parameters = ready["parameters"].get<Index>();
  }

  void warm_up(int steps) { take(steps); }

  void take_round(int steps) {
    const double peak = measure_fma_peak(0.02);
    const std::vector<double> seconds = take(steps);
    result_.seconds.insert(result_.seconds.end(), seconds.begin(), seconds.end());
    result_.round_medians.push_back(stats::quantile(seconds, 0.5));
    result_.peak_fraction.push_back(result_.candidate.flops_per_step /
                                    result_.round_medians.back() / peak);
  }

  const Result& result() const { return result_; }

 private:
  std::vector<double> take(int steps) {
    process_.write_line(fmt::format("step {}", steps));
    const json reply = answer();
    result_.peak_bytes = reply.value("peak_bytes", 0.0);
    result_.sent_bytes = reply.value("sent_bytes", 0.0);
    auto seconds = reply.value("seconds", std::vector<double>{});
    if (seconds.size() != static_cast<size_t>(steps))
      throw Failure(fmt::format("{} steps asked for, {} answered", steps, seconds.size()));
    return seconds;
  }

  /// Lines that do not begin with { are ignored.
  json answer() {
    while (const auto line = process_.read_line()) {
      if (!line->starts_with('{')) continue;
      json object = json::parse(*line, nullptr, false);
      if (object.is_object()) return object;
      throw Failure(fmt::format("answers '{}', which is not JSON", *line));
    }
    throw Failure(process_.how_it_ended());
  }

  Process process_;
  Result result_;
};

/// Runs `work`; returns why it failed, or nothing.
template <class Work>
std::optional<std::string> failure_of(Work&& work) {
  try {
    work();
  } catch (const Failure& failure) {
    return failure.what();
  } catch (const Error& error) {
    return error.what();
  } catch (const json::exception& error) {
    return fmt::format("answers in unexpected types: {}", error.what());
  }
  return std::nullopt;
}

double seconds_to_first_step(const Candidate& candidate) {
  std::optional<Process> process;
  const double seconds = seconds_of([&] {
    process.emplace(candidate.command);
    process->write_line("step 1");
    for (int seen = 0; seen < candidate.line;) {
      const auto line = process->read_line();
      if (!line) throw Failure(process->how_it_ended());
      seen += line->starts_with(candidate.begins);
    }
  });
  process->kill();
  return seconds;
}

}  // namespace

BenchmarkResult run_interleaved(const std::vector<Candidate>& candidates,
                                const Interleaving& rules) {
  BenchmarkResult result;
  std::vector<std::unique_ptr<Runner>> runners;
  for (const Candidate& candidate : candidates) {
    const auto failure = failure_of([&] {
      auto runner = std::make_unique<Runner>(candidate);
      runner->warm_up(rules.warmup);
      runners.push_back(std::move(runner));
    });
    if (failure) result.left_out.push_back(fmt::format("{}: {}", candidate.name, *failure));
  }
  for (int round = 0; round < rules.rounds; ++round) {
    std::erase_if(runners, [&](const std::unique_ptr<Runner>& runner) {
      const auto failure = failure_of([&] { runner->take_round(rules.steps); });
      if (failure)
        result.left_out.push_back(fmt::format("{}: {}", runner->result().candidate.name, *failure));
      return failure.has_value();
    });
  }
  for (const auto& runner : runners) result.finished.push_back(runner->result());
  return result;
}

BenchmarkResult time_to_first_step(const std::vector<Candidate>& candidates, int rounds,
                                   const std::filesystem::path& scratch) {
  BenchmarkResult result;
  std::vector<Result> runners;
  for (const Candidate& candidate : candidates) runners.push_back({.candidate = candidate});
  for (int round = 0; round <= rounds; ++round) {
    std::erase_if(runners, [&](Result& runner) {
      std::filesystem::remove_all(scratch);
      const auto failure = failure_of([&] {
        const double seconds = seconds_to_first_step(runner.candidate);
        if (round > 0) runner.seconds.push_back(seconds);
      });
      if (failure)
        result.left_out.push_back(fmt::format("{}: {}", runner.candidate.name, *failure));
      return failure.has_value();
    });
  }
  std::filesystem::remove_all(scratch);
  for (Result& runner : runners) {
    runner.round_medians = runner.seconds;
    result.finished.push_back(std::move(runner));
  }
  return result;
}

}  // namespace difftape::bench
