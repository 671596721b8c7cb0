#include <fmt/format.h>

#include <algorithm>

#include "train/study/compare/claims/claims.h"
#include "train/study/compare/study.h"
#include "train/study/compare/table.h"

namespace difftape::study {

namespace {

/// What the tables of arms leave to explain.
constexpr const char* kLegend =
    "Means over the seeds that ended; losses of those that finished. +- is half of a 95 % "
    "t-interval, differences are paired by seed, p is corrected by Holm over the table.";
constexpr const char* kSensitivityLegend =
    "lr sensitivity E: mean over the rates of [final validation loss - the best rate's], nats a "
    "token; a run that diverged counts with its loss at init. From, to: 95 % bootstrap over seeds.";
constexpr const char* kVerdictLegend =
    "A difference is detected if p, corrected by Holm over all tests, is below 0.05 and it exceeds "
    "the noise floor, the standard deviation between seeds of the arm compared with. A seed is "
    "averaged over rates before seeds are compared.";

bool is_single_runs(const Study& study) {
  return std::all_of(study.arms.begin(), study.arms.end(), [](const Arm& arm) {
    return arm.cells.size() == 1 && arm.cells.front().runs.size() == 1;
  });
}

std::string single_runs(const Study& study) {
  std::vector<RunSummary> summaries;
  for (const Arm& arm : study.arms) {
    summaries.push_back(arm.cells.front().runs.front()->summary);
  }
  return comparison_table(summaries, study.baseline);
}

}  // namespace

std::string study_text(const Study& study, std::size_t width) {
  std::string text;
  if (is_single_runs(study)) {
    text = single_runs(study);
  } else {
    text = to_text(runs_table(study), width, 2);
    text += system::wrapped(kLegend, width, "");
    const bool swept = std::any_of(study.arms.begin(), study.arms.end(),
                                   [](const Arm& arm) { return arm.cells.size() > 1; });
    if (swept) {
      text += '\n';
      text += to_text(sensitivity_table(study), width, 1);
      text += system::wrapped(kSensitivityLegend, width, "");
    }
  }
  const std::vector<Finding> findings = judge(study);
  text += '\n';
  text += findings_text(findings, width);
  const bool judged = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.verdict != Verdict::not_tested;
  });
  if (judged) text += system::wrapped(kVerdictLegend, width, "");
  return text;
}

}  // namespace difftape::study
