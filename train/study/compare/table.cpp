#include "train/study/compare/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace difftape::study {

namespace {

/// The spread of the small runs published with either version of differential attention.
constexpr const char* kCaution =
    "Each row is one run. Published runs of this size differ by 0.004 to 0.035 nats either way: a\n"
    "difference as small as that decides nothing.\n";

std::string number(double value, fmt::string_view format) {
  return std::isnan(value) ? "-" : fmt::format(fmt::runtime(format), value);
}

/// Gradient norms span many decades: "0.424", "15.700", "3.21e+05".
std::string norm(double value) { return number(value, value < 1000 ? "{:.3f}" : "{:.2e}"); }

std::vector<std::string> cells(const RunSummary& run, const RunSummary& baseline) {
  return {run.name,
          system::grouped(run.status.parameters),
          number(run.train_loss, "{:.4f}"),
          number(run.val_loss, "{:.4f}"),
          &run == &baseline ? "-" : number(run.val_loss - baseline.val_loss, "{:+.4f}"),
          number(run.spike_score_loss, "{:.2f}"),
          number(run.spike_score_grad, "{:.2f}"),
          norm(run.grad_norm_median),
          norm(run.grad_norm_p99),
          norm(run.grad_norm_max),
          number(run.grad_norm_late_variance, "{:.2e}"),
          std::isnan(run.tokens_per_sec) ? "-" : system::grouped(std::llround(run.tokens_per_sec)),
          describe_state(run.status)};
}

}  // namespace

system::Table compare(std::span<const RunSummary> runs, std::size_t baseline) {
  system::Table table;
  table.columns = {{"", "run", true},
                   {"", "parameters"},
                   {"loss", "train"},
                   {"loss", "val"},
                   {"loss", "val vs " + runs[baseline].name},
                   {"spike score %", "loss"},
                   {"spike score %", "grad"},
                   {"grad_norm", "median"},
                   {"grad_norm", "p99"},
                   {"grad_norm", "max"},
                   {"grad_norm", "late var"},
                   {"", "tokens/s"},
                   {"", "state", true}};
  for (const RunSummary& run : runs) table.rows.push_back(cells(run, runs[baseline]));
  return table;
}

std::string comparison_table(std::span<const RunSummary> runs, std::size_t baseline) {
  return to_text(compare(runs, baseline)) + (runs.size() > 1 ? kCaution : "");
}

std::string describe_state(const run::RunStatus& status) {
  switch (status.state) {
    case run::RunState::finished:
      return "finished";
    case run::RunState::running:
      return fmt::format("running {}/{}", status.step, status.steps);
    case run::RunState::stopped:
      return fmt::format("stopped at step {}", status.step);
    case run::RunState::failed:
      return fmt::format("failed at step {}", status.step);
    case run::RunState::diverged:
      break;
  }
  if (!status.diverged) return fmt::format("diverged at step {}", status.step);
  const run::Divergence& where = *status.diverged;
  return fmt::format("diverged at step {} ({}){}{}", where.step, where.quantity,
                     where.op.empty() ? "" : ", first op: ", where.op);
}

}  // namespace difftape::study
