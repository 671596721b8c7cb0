#pragma once
// report.html: one page that compares runs. It holds everything it needs (styles, scripts, data),
// loads nothing, stays below 2 MB for any length of run, and reads without JavaScript.

#include <filesystem>
#include <string>
#include <vector>

namespace difftape::study {

struct Study;
struct JudgedClaims;

/// What a page shows besides the study.
struct PageParts {
  std::vector<std::string> notes = {};  ///< said at its top, for example which runs were left out
  /// Logged quantities that are drawn (charts.h); none: those of the registry with a picture.
  std::vector<std::string> charts = {};
  const JudgedClaims* claims = nullptr;  ///< null: the page speaks of no claim
  /// After which the page loads itself again, because its runs are still trained; 0: never.
  int refresh_seconds = 0;
};

/// Writes the page of a study. Throws UsageError for a chart of no quantity, and OutputError if
/// `path` cannot be written.
void write_report(const Study& study, const std::filesystem::path& path, const std::string& title,
                  const PageParts& parts = {});

/// Writes the forest plot of the claims that are tested, as SVG on white; nothing if none is.
/// Throws OutputError.
void write_forest(const JudgedClaims& claims, const std::filesystem::path& path);

/// Writes the learning-rate curve alone, as SVG on white. Throws UsageError for a study of a single
/// learning rate, and OutputError.
void write_lr_curve(const Study& study, const std::filesystem::path& path);

/// Writes lr_optimum.csv (train/study/compare/lr_curves.h) beside a page. Throws OutputError.
void write_lr_optima(const Study& study, const std::filesystem::path& page);

}  // namespace difftape::study
