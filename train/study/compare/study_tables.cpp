#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "train/stats/descriptive.h"
#include "train/stats/paired.h"
#include "train/study/compare/study.h"
#include "train/study/compare/table.h"

namespace difftape::study {

namespace {

std::string number(double value, fmt::string_view format) {
  return std::isnan(value) ? "-" : fmt::format(fmt::runtime(format), value);
}

std::string norm(double value) { return number(value, value < 1000 ? "{:.3f}" : "{:.2e}"); }

/// The mean of a number of the summaries where there is one.
double mean_of(const Cell& cell, double RunSummary::*member) {
  std::vector<double> values;
  for (const RunRecord* run : cell.runs) {
    if (run->complete() && !std::isnan(run->summary.*member))
      values.push_back(run->summary.*member);
  }
  return stats::mean(values);
}

/// Final validation loss, or NaN for a run that did not finish.
double final_loss(const RunRecord& run) {
  const bool finished = run.summary.status.state == run::RunState::finished;
  return finished ? run.summary.val_loss : std::numeric_limits<double>::quiet_NaN();
}

stats::Interval loss_of(const Cell& cell) {
  std::vector<double> values;
  for (const RunRecord* run : cell.runs) {
    if (!std::isnan(final_loss(*run))) values.push_back(final_loss(*run));
  }
  return stats::mean_interval(values);
}

/// Seeds that finished in both arms at this rate.
stats::PairedDifference difference_to(const Arm& baseline, const Cell& cell) {
  std::vector<double> a, b;
  for (const Cell& other : baseline.cells) {
    if (other.lr != cell.lr) continue;
    for (const RunRecord* run : cell.runs) {
      for (const RunRecord* match : other.runs) {
        if (match->seed != run->seed || std::isnan(final_loss(*run) - final_loss(*match))) continue;
        a.push_back(final_loss(*run));
        b.push_back(final_loss(*match));
      }
    }
  }
  return stats::paired_difference(a, b);
}

std::vector<std::string> row_of(const std::string& arm, const Cell& cell,
                                const stats::PairedDifference& difference, double p) {
  const stats::Interval loss = loss_of(cell);
  const double speed = mean_of(cell, &RunSummary::tokens_per_sec);
  return {arm,
          fmt::format("{:g}", cell.lr),
          system::grouped(cell.runs.front()->summary.status.parameters),
          fmt::to_string(std::count_if(cell.runs.begin(), cell.runs.end(),
                                       [](const RunRecord* run) { return run->complete(); })),
          number(loss.mean, "{:.4f}"),
          number(loss.half_width, "{:.4f}"),
          number(difference.difference.mean, "{:+.4f}"),
          number(difference.difference.half_width, "{:.4f}"),
          number(p, "{:.3f}"),
          number(mean_of(cell, &RunSummary::spike_score_loss), "{:.2f}"),
          number(mean_of(cell, &RunSummary::spike_score_grad), "{:.2f}"),
          norm(mean_of(cell, &RunSummary::grad_norm_median)),
          norm(mean_of(cell, &RunSummary::grad_norm_p99)),
          norm(mean_of(cell, &RunSummary::grad_norm_max)),
          number(mean_of(cell, &RunSummary::grad_norm_late_variance), "{:.2e}"),
          std::isnan(speed) ? "-" : system::grouped(std::llround(speed)),
          describe_states(cell.runs)};
}

}  // namespace

system::Table runs_table(const Study& study) {
  const Arm& baseline = study.arms[study.baseline];
  const std::string versus = "val vs " + baseline.name;
  system::Table table;
  table.columns = {{"", "arm", true},         {"", "lr"},
                   {"", "parameters"},        {"", "seeds"},
                   {"val loss", "mean"},      {"val loss", "+-"},
                   {versus, "mean"},          {versus, "+-"},
                   {versus, "p (Holm)"},      {"spike score %", "loss"},
                   {"spike score %", "grad"}, {"grad_norm", "median"},
                   {"grad_norm", "p99"},      {"grad_norm", "max"},
                   {"grad_norm", "late var"}, {"", "tokens/s"},
                   {"", "state", true}};
  std::vector<stats::PairedDifference> differences;
  std::vector<double> p;
  for (const Arm& arm : study.arms) {
    for (const Cell& cell : arm.cells) {
      const bool compared = &arm != &baseline;
      differences.push_back(compared ? difference_to(baseline, cell) : stats::PairedDifference{});
      p.push_back(differences.back().p);
    }
  }
  const std::vector<double> adjusted = stats::holm(p);
  std::size_t row = 0;
  for (const Arm& arm : study.arms) {
    for (const Cell& cell : arm.cells) {
      table.rows.push_back(row_of(arm.name, cell, differences[row], adjusted[row]));
      ++row;
    }
  }
  return table;
}

system::Table sensitivity_table(const Study& study) {
  system::Table table;
  table.columns = {{"", "arm", true},
                   {"", "rates"},
                   {"", "diverged"},
                   {"lr sensitivity", "E"},
                   {"lr sensitivity", "from"},
                   {"lr sensitivity", "to"},
                   {"best", "lr"},
                   {"best", "val loss"},
                   {"best", "+-"}};
  for (const LrCurve& curve : lr_curves(study)) {
    const LrPoint* best = best_point(curve.points);
    int runs = 0, diverged = 0;
    for (const LrPoint& point : curve.points) runs += point.runs, diverged += point.diverged;
    table.rows.push_back(
        {curve.arm, fmt::to_string(curve.points.size()), fmt::format("{} of {}", diverged, runs),
         number(curve.sensitivity.mean, "{:.4f}"), number(curve.sensitivity_limits.low, "{:.4f}"),
         number(curve.sensitivity_limits.high, "{:.4f}"),
         best == nullptr ? "-" : fmt::format("{:g}", best->lr),
         best == nullptr ? "-" : number(best->loss.mean, "{:.4f}"),
         best == nullptr ? "-" : number(best->loss.half_width, "{:.4f}")});
  }
  return table;
}

}  // namespace difftape::study
