#include "bench/race.h"

#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "bench/measure.h"
#include "bench/process.h"
#include "core/error.h"
#include "core/peak.h"

namespace difftape::bench {
namespace {

using nlohmann::json;

/// Why a contestant drops out.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A contestant that runs, and what was measured of it.
class Runner {
 public:
  explicit Runner(const Contestant& who) : process_(who.command), result_{.who = who} {
    const json ready = answer();
    result_.version = ready.value("version", "");
    result_.idle_bytes = ready.value("idle_bytes", 0.0);
    if (ready.contains("parameters")) result_.parameters = ready["parameters"].get<Index>();
  }

  void warm_up(int steps) { take(steps); }

  void take_turn(int steps) {
    const double peak = measure_fma_peak(0.02);
    const std::vector<double> seconds = take(steps);
    result_.seconds.insert(result_.seconds.end(), seconds.begin(), seconds.end());
    result_.turns.push_back(stats::quantile(seconds, 0.5));
    result_.peak_share.push_back(result_.who.flops_per_step / result_.turns.back() / peak);
  }

  const Result& result() const { return result_; }

 private:
  std::vector<double> take(int steps) {
    process_.write_line(fmt::format("step {}", steps));
    const json reply = answer();
    result_.peak_bytes = reply.value("peak_bytes", 0.0);
    const auto seconds = reply.value("seconds", std::vector<double>{});
    if (seconds.size() != static_cast<size_t>(steps))
      throw Failure(fmt::format("{} steps asked for, {} answered", steps, seconds.size()));
    return seconds;
  }

  /// Lines that are no objects are chatter.
  json answer() {
    while (const auto line = process_.read_line()) {
      if (!line->starts_with('{')) continue;
      json object = json::parse(*line, nullptr, false);
      if (object.is_object()) return object;
      throw Failure(fmt::format("answers '{}', which is not JSON", *line));
    }
    throw Failure(process_.last_words());
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

double seconds_to_first_step(const Contestant& who) {
  std::optional<Process> process;
  const double seconds = seconds_of([&] {
    process.emplace(who.command);
    process->write_line("step 1");
    for (int seen = 0; seen < who.line;) {
      const auto line = process->read_line();
      if (!line) throw Failure(process->last_words());
      seen += line->starts_with(who.begins);
    }
  });
  process->kill();
  return seconds;
}

}  // namespace

RaceResult race(const std::vector<Contestant>& contestants, const RaceRules& rules) {
  RaceResult result;
  std::vector<std::unique_ptr<Runner>> runners;
  for (const Contestant& who : contestants) {
    const auto failure = failure_of([&] {
      auto runner = std::make_unique<Runner>(who);
      runner->warm_up(rules.warmup);
      runners.push_back(std::move(runner));
    });
    if (failure) result.left_out.push_back(fmt::format("{}: {}", who.name, *failure));
  }
  for (int round = 0; round < rules.rounds; ++round) {
    std::erase_if(runners, [&](const std::unique_ptr<Runner>& runner) {
      const auto failure = failure_of([&] { runner->take_turn(rules.steps); });
      if (failure)
        result.left_out.push_back(fmt::format("{}: {}", runner->result().who.name, *failure));
      return failure.has_value();
    });
  }
  for (const auto& runner : runners) result.finished.push_back(runner->result());
  return result;
}

RaceResult race_to_first_step(const std::vector<Contestant>& contestants, int rounds,
                              const std::filesystem::path& scratch) {
  RaceResult result;
  std::vector<Result> runners;
  for (const Contestant& who : contestants) runners.push_back({.who = who});
  for (int round = 0; round <= rounds; ++round) {
    std::erase_if(runners, [&](Result& runner) {
      std::filesystem::remove_all(scratch);
      const auto failure = failure_of([&] {
        const double seconds = seconds_to_first_step(runner.who);
        if (round > 0) runner.seconds.push_back(seconds);
      });
      if (failure) result.left_out.push_back(fmt::format("{}: {}", runner.who.name, *failure));
      return failure.has_value();
    });
  }
  std::filesystem::remove_all(scratch);
  for (Result& runner : runners) {
    runner.turns = runner.seconds;
    result.finished.push_back(std::move(runner));
  }
  return result;
}

}  // namespace difftape::bench
