#include "train/study/sweep/sweep.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>

#include "layers/cost.h"
#include "train/run/config/writer.h"
#include "train/run/loop/step.h"
#include "train/run/records/progress.h"
#include "train/study/sweep/layout.h"
#include "train/study/sweep/run_progress.h"
#include "train/study/sweep/worker.h"
#include "train/system/text_table.h"

namespace difftape::study {

namespace {

constexpr double kBudget = 10;  ///< seconds for all measurements

/// What decides how long a step takes; runs with the same text are measured once.
std::string shape_of(run::Config config) {
  const run::TrainConfig train = config.train;
  config.run = {};
  config.optim = {};
  config.log = {};
  config.train = {};
  config.train.gradient_accumulation_steps = train.gradient_accumulation_steps;
  config.train.precision = train.precision;
  config.train.activation_checkpointing = train.activation_checkpointing;
  return to_yaml(config);
}

/// Seconds of a run, by shape.
class Estimates {
 public:
  Estimates(const SweepConfig& sweep, const std::vector<std::size_t>& left, const Layout& layout,
            const std::string& program) {
    std::map<std::string, const run::Config*> shapes;
    for (const std::size_t i : left) {
      const run::Config& config = sweep.runs[i].config();
      shapes.emplace(shape_of(config), &config);
    }
    const double begin = run::Progress::steady_seconds();
    const double each = std::clamp(kBudget / 2 / static_cast<double>(shapes.size()), 0.2, 1.0);
    double per_flop = 0;
    for (const auto& [shape, config] : shapes) {
      const double remaining = kBudget - (run::Progress::steady_seconds() - begin);
      if (remaining < each) break;
      const auto time = measure_step(*config, layout, each, remaining, program);
      if (!time) continue;
      times_[shape] = *time;
      per_flop += time->step / flops_per_step(*config);
    }
    measured_ = times_.size();
    if (times_.empty()) return;
    for (const auto& [shape, config] : shapes) {
      StepTime time = times_.begin()->second;
      time.step = per_flop / static_cast<double>(measured_) * flops_per_step(*config);
      times_.emplace(shape, time);
    }
    shapes_ = shapes.size();
  }

  /// Of what is left after `done` steps, with validation, whose batches cost a third: forward
  /// without backward.
  double seconds(const run::Config& config, Index done) const {
    const auto found = times_.find(shape_of(config));
    if (found == times_.end()) return std::nan("");
    const StepTime& time = found->second;
    const Index batches = batches_left_to_validate(config, done, time.val_batches);
    const double micro_batch =
        time.step / static_cast<double>(config.train.gradient_accumulation_steps);
    return time.start + time.step * static_cast<double>(config.train.steps - done) +
           micro_batch / 3 * static_cast<double>(batches);
  }

  std::string str() const {
    return measured_ == shapes_
               ? fmt::format("{} {} timed", measured_,
                             measured_ == 1 ? "kind of step" : "kinds of steps")
               : fmt::format("{} of {} kinds of steps timed, the others by their operations",
                             measured_, shapes_);
  }

 private:
  std::map<std::string, StepTime> times_;
  std::size_t measured_ = 0, shapes_ = 0;
};

std::string state_of(const RunProgress& run) {
  if (run.complete()) return std::string(to_string(run.state));
  if (!run.selected) return "not selected";
  if (run.state == run::RunState::failed) return fmt::format("cannot be read: {}", run.error);
  return run.on_disk ? fmt::format("continues at step {}", run.done) : "new";
}

/// Until the last of `jobs` workers is done, each taking the next run when it is free.
double total_seconds(const std::vector<double>& runs, int jobs) {
  std::vector<double> busy(static_cast<std::size_t>(jobs));
  for (const double seconds : runs) *std::min_element(busy.begin(), busy.end()) += seconds;
  return *std::max_element(busy.begin(), busy.end());
}

}  // namespace

void dry_run(const SweepConfig& sweep, const SweepRequest& request) {
  std::vector<RunProgress> progress;
  std::vector<std::size_t> left;
  for (const SweepRun& run : sweep.runs) {
    progress.push_back(inspect(run));
    if (run.selected && progress.back().state == run::RunState::queued)
      left.push_back(progress.size() - 1);
  }
  *request.console << fmt::format("timing steps of {} runs\n", left.size()) << std::flush;
  Layout layout;
  std::optional<Estimates> estimates;
  if (!left.empty()) {
    std::vector<const run::Config*> waiting;
    for (const std::size_t i : left) waiting.push_back(&sweep.runs[i].config());
    layout =
        choose_layout(sweep.runs[left.front()].config(), left.size(), request.jobs,
                      jobs_with_memory(waiting, request.jobs), request.program, *request.console);
    estimates.emplace(sweep, left, layout, request.program);
  }
  system::Table table{{{"", "run", true},
                       {"", "parameters"},
                       {"", "tokens"},
                       {"", "steps"},
                       {"", "PFLOP"},
                       {"", "time"},
                       {"", "state", true}},
                      {}};
  double petaflop = 0;
  std::vector<double> seconds;
  for (std::size_t i = 0; i < progress.size(); ++i) {
    const run::Config& config = sweep.runs[i].config();
    const Index steps = config.train.steps;
    const bool trains = std::ranges::binary_search(left, i);
    const double operations = flops_per_step(config) * static_cast<double>(steps) / 1e15;
    if (trains) {
      seconds.push_back(estimates->seconds(config, progress[i].done));
      petaflop += flops_per_step(config) * static_cast<double>(steps - progress[i].done) / 1e15;
    }
    table.rows.push_back(
        {config.run.name,
         system::grouped(model_cost(config.model, config.data.seq_len).total_parameters),
         system::grouped(tokens_per_step(config) * steps), fmt::to_string(steps),
         fmt::format("{:.4f}", operations), trains ? run::format_duration(seconds.back()) : "",
         state_of(progress[i])});
  }
  std::ostream& console = *request.console;
  console << to_text(table)
          << fmt::format("{} runs, {} to train, {:.4f} PFLOP", progress.size(), left.size(),
                         petaflop);
  if (left.empty()) {
    console << "\n";
  } else if (const double total = total_seconds(seconds, layout.jobs()); std::isfinite(total)) {
    console << fmt::format("; about {} with --jobs {} ({})\n", run::format_duration(total),
                           layout.jobs(), estimates->str())
            << "This is an estimate: it takes the machine to stay as busy as it is now, and leaves "
               "out checkpoints.\n";
  } else {
    console << "; how long that takes cannot be measured here\n";
  }
}

}  // namespace difftape::study
