#pragma once
// Writes report.html, which compares runs. The page is self-contained (styles, scripts, data),
// stays below 2 MB for any length of run, and is readable without JavaScript.

#include <filesystem>
#include <string>
#include <vector>

namespace difftape::study {

struct Study;
struct JudgedClaims;

/// Parts of a page besides the study.
struct PageParts {
  std::vector<std::string> notes = {};  ///< shown at the top, for example about omitted runs
  /// Metrics to draw (sections.h); empty: the registered metrics with a picture.
  std::vector<std::string> charts = {};
  const JudgedClaims* claims = nullptr;  ///< null: the page has no claims
  /// Seconds until the page reloads, while its runs are trained; 0: never.
  int refresh_seconds = 0;
};

/// Writes the page of a study. Throws UsageError for a chart of an unknown metric, and OutputError
/// if `path` cannot be written.
void write_report(const Study& study, const std::filesystem::path& path, const std::string& title,
                  const PageParts& parts = {});

/// Writes the forest plot of the tested claims as SVG on white. Returns false and writes nothing if
/// there are none. Throws OutputError.
bool write_forest(const Study& study, const JudgedClaims& claims,
                  const std::filesystem::path& path);

/// Writes the learning-rate curve as SVG on white. Throws UsageError if no arm has two learning
/// rates, and OutputError.
void write_lr_curve(const Study& study, const std::filesystem::path& path);

/// Writes lr_optimum.csv (train/study/compare/lr_curves.h) next to a page. Throws OutputError.
void write_lr_optima(const Study& study, const std::filesystem::path& page);

}  // namespace difftape::study
