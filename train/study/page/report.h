#pragma once
// report.html: one page that compares runs. It holds everything it needs (styles, scripts, data),
// loads nothing, stays below 2 MB for any length of run, and reads without JavaScript.

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace difftape::study {

struct Study;

struct PageOptions {
  /// The logged quantities that are drawn (charts.h); none: those of the registry with a picture.
  std::vector<std::string> charts = {};
  /// After which the page loads itself again, because its runs are still trained; 0: never.
  int refresh_seconds = 0;
};

/// Writes the page of a study. `notes` are said at its top, for example which runs were left out.
/// Throws UsageError for a chart of no quantity, and OutputError if `path` cannot be written.
void write_report(const Study& study, const std::filesystem::path& path, const std::string& title,
                  std::span<const std::string> notes = {}, const PageOptions& options = {});

/// Writes the learning-rate curve alone, as SVG on white. Throws UsageError for a study of a single
/// learning rate, and OutputError.
void write_lr_curve(const Study& study, const std::filesystem::path& path);

}  // namespace difftape::study
