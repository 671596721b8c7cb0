#pragma once
// What a worker process is asked to do, by a text on its standard input.

#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

#include "core/error.h"
#include "train/run/config/config.h"
#include "train/system/exit.h"

namespace difftape::study {

struct Job {
  run::Config config;
  /// 0: train in `out`. Otherwise time steps for about so many seconds, writing nothing.
  double measure_seconds = 0;
  std::filesystem::path out;
  bool resume = false;
  std::vector<std::string> command;  ///< recorded in env.json
};

/// What measuring found out.
struct StepTime {
  double start = 0;  ///< seconds until the first step: data, weights
  double step = 0;   ///< seconds a step, the median after the first
};

std::string to_text(const Job& job);
std::string to_text(const StepTime& time);
/// Throw DataError for a text that is not one of to_text.
Job read_job(const std::string& text);
StepTime read_step_time(const std::string& text);

/// What the worker does: reads a job, trains or measures, prints nothing but a StepTime. Returns
/// what train() returns, and throws what it throws.
system::Exit work(std::istream& in, std::ostream& out);

}  // namespace difftape::study
