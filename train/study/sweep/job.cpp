#include "train/study/sweep/job.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>

#include "train/run/config/writer.h"
#include "train/run/loop/step.h"
#include "train/run/loop/trainer.h"

namespace difftape::study {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr int kFewestSteps = 3;  ///< that are timed

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

StepTime measure(const run::Config& config, double seconds) {
  const Clock::time_point begin = Clock::now();
  run::TrainState state(config);
  StepTime time{seconds_since(begin), 0};
  train_step(state);  // generates the kernels and fills the pool
  std::vector<double> steps;
  const Clock::time_point first = Clock::now();
  while (steps.size() < kFewestSteps || seconds_since(first) < seconds) {
    steps.push_back(train_step(state).seconds);
  }
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::nth_element(steps.begin(), middle, steps.end());
  time.step = *middle;
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
  const auto bytes = Json::to_cbor(Json{{"start", time.start}, {"step", time.step}});
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
    return StepTime{json.at("start").get<double>(), json.at("step").get<double>()};
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

}  // namespace difftape::study
