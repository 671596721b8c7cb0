#include <algorithm>
#include <ostream>

#include "layers/cost.h"
#include "train/run/loop/step.h"
#include "train/run/records/progress.h"
#include "train/study/compare/row.h"
#include "train/study/sweep/run_progress.h"
#include "train/study/sweep/sweep.h"
#include "train/study/sweep/worker.h"
#include "train/system/number.h"
#include "train/system/text_table.h"

namespace difftape::study {

namespace {

class Rate {
 public:
  void add(const run::Config& config) {
    try {
      const double seconds = load_run(config.run.out).number("train_seconds");
      if (!(seconds > 0)) return;
      flops_ += flops_per_step(config) * static_cast<double>(config.train.steps);
      seconds_ += seconds;
      runs_ += 1;
    } catch (const Error&) {  // damaged: the report lists it
    }
  }
  bool is_known() const { return runs_ > 0; }
  double seconds(double flops) const { return flops * seconds_ / flops_; }
  std::string str() const {
    return fmt::format("{} finished {}", runs_, runs_ == 1 ? "run" : "runs");
  }

 private:
  double flops_ = 0, seconds_ = 0;
  int runs_ = 0;
};

std::string state_of(const RunProgress& run) {
  if (run.complete()) return std::string(to_string(run.state));
  if (!run.selected) return "not selected";
  if (run.state == run::RunState::failed) return fmt::format("cannot be read: {}", run.error);
  return run.on_disk ? fmt::format("resumes at step {}", run.done) : "new";
}

/// Returns the time until the last of `jobs` workers is done; a free worker starts the next run.
double total_seconds(const std::vector<double>& runs, int jobs) {
  std::vector<double> busy(static_cast<std::size_t>(jobs));
  for (const double seconds : runs) *std::ranges::min_element(busy) += seconds;
  return std::ranges::max(busy);
}

}  // namespace

void dry_run(const SweepConfig& sweep, const SweepRequest& request) {
  std::vector<RunProgress> progress;
  std::vector<const run::Config*> left;
  Rate rate;
  for (const SweepRun& run : sweep.runs) {
    const RunProgress& here = progress.emplace_back(inspect(run));
    if (here.waits()) left.push_back(&run.config());
    if (here.on_disk && here.state == run::RunState::finished) rate.add(run.config());
  }
  const int jobs = left.empty() ? 0 : choose_layout(left, request.jobs).jobs();
  system::Table table{{{"", "run", true}}, {}};
  for (const char* head : {"parameters", "tokens", "steps", "PFLOP", "time"})
    table.columns.push_back({"", head});
  table.columns.push_back({"", "state", true});
  double flops = 0;
  std::vector<double> seconds;
  for (std::size_t i = 0; i < progress.size(); ++i) {
    const run::Config& config = sweep.runs[i].config();
    const Index steps = config.train.steps;
    const auto of_steps = [&](Index count) {
      return flops_per_step(config) * static_cast<double>(count);
    };
    std::string time;
    if (progress[i].waits()) {
      const double todo = of_steps(steps - progress[i].done);
      flops += todo;
      if (rate.is_known())
        time = system::describe_duration(seconds.emplace_back(rate.seconds(todo)));
    }
    table.rows.push_back(
        {config.run.name,
         system::grouped(model_cost(config.model, config.data.seq_len).total_parameters),
         system::grouped(tokens_per_step(config) * steps), fmt::to_string(steps),
         fmt::format("{:.4f}", of_steps(steps) / 1e15), time, state_of(progress[i])});
  }
  std::ostream& console = *request.console;
  console << to_text(table)
          << fmt::format("{} runs, {} to train, {:.4f} PFLOP", progress.size(), left.size(),
                         flops / 1e15);
  if (!seconds.empty()) {
    console << fmt::format("; about {} with --jobs {}, at the speed of {}",
                           system::describe_duration(total_seconds(seconds, jobs)), jobs,
                           rate.str());
  }
  console << "\n";
  try {
    require_data(sweep, progress);
  } catch (const Error& error) {
    console << "these runs cannot start: " << error.what() << "\n";
  }
}

}  // namespace difftape::study
