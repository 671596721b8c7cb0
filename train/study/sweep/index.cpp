#include "train/study/sweep/index.h"

#include <fmt/ranges.h>

#include <cmath>

#include "train/study/compare/summary.h"
#include "train/system/csv.h"
#include "train/system/files.h"

namespace difftape::study {
namespace {

namespace fs = std::filesystem;

fs::path path_of(const SweepConfig& sweep) { return fs::path(sweep.out) / "index.csv"; }

std::string number(double value) { return std::isnan(value) ? "" : fmt::format("{}", value); }

/// Seconds of all steps that were logged.
double training_seconds(const RunRecord& run) {
  const auto rates = run.metrics.columns.find("throughput/tokens_per_sec");
  if (rates == run.metrics.columns.end()) return std::nan("");
  double seconds = 0;
  for (const double rate : rates->second) {
    if (rate > 0) seconds += static_cast<double>(run.summary.status.tokens_per_step) / rate;
  }
  return seconds;
}

/// The cells from `step` to `seconds`.
std::vector<std::string> measured(const fs::path& dir) {
  try {
    const RunRecord run = load_run(dir);
    const RunSummary& s = run.summary;
    std::vector<std::string> cells{fmt::to_string(s.status.step), fmt::to_string(s.status.steps),
                                   s.status.diverged ? fmt::to_string(s.status.diverged->step) : "",
                                   fmt::to_string(s.status.parameters)};
    for (const double value :
         {s.train_loss, s.val_loss, s.spike_score_loss, s.spike_score_grad, s.grad_norm_median,
          s.grad_norm_p99, s.grad_norm_max, s.grad_norm_late_variance, s.tokens_per_sec,
          training_seconds(run)}) {
      cells.push_back(number(value));
    }
    return cells;
  } catch (const Error&) {
    return std::vector<std::string>(14);  // its state says that it failed
  }
}

}  // namespace

SweepIndex::SweepIndex(const SweepConfig& sweep) : sweep_(&sweep), rows_(sweep.runs.size()) {
  const fs::path path = path_of(sweep);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return;
  if (fs::is_regular_file(path, ignored) && system::read_text(path).starts_with(kIndexColumns))
    return;
  throw OutputError(fmt::format(
      "{} exists and is no index of a sweep; nothing else is replaced: move it, or choose another "
      "directory with --out",
      path.string()));
}

void SweepIndex::update(std::size_t i, const RunProgress& progress) {
  const SweepRun& run = sweep_->runs[i];
  const run::Config& config = run.config();
  std::vector<std::string> cells{config.run.name, config.run.arm, fmt::to_string(config.run.seed),
                                 number(config.optim.lr), std::string(name_of(progress.phase))};
  const auto numbers = progress.on_disk && progress.phase != Phase::queued
                           ? measured(config.run.out)
                           : std::vector<std::string>(14);
  cells.insert(cells.end(), numbers.begin(), numbers.end());
  cells.push_back(fs::path(config.run.out).filename().string());
  cells.insert(cells.end(), run.swept.begin(), run.swept.end());
  for (std::string& cell : cells) cell = system::csv_field(cell);
  rows_[i] = fmt::format("{}\n", fmt::join(cells, ","));
}

void SweepIndex::write() const {
  std::string text = kIndexColumns;
  for (const std::string& key : sweep_->swept) text += fmt::format(",{}", system::csv_field(key));
  text += "\n";
  for (const std::string& row : rows_) text += row;
  system::replace_text(path_of(*sweep_), text);
}

}  // namespace difftape::study
