#pragma once
// report.html: one page that compares runs. It holds everything it needs (styles, scripts, data),
// loads nothing, stays below 2 MB for any length of run, and reads without JavaScript.

#include <filesystem>
#include <span>
#include <string>

namespace difftape::study {

struct Study;

/// Writes the page of a study. `notes` are said at its top, for example which runs were left out.
/// `charts` names the logged quantities that are drawn (charts.h); none: those of the registry with
/// a picture. Throws UsageError for a name that is no quantity, and OutputError if `path` cannot be
/// written.
void write_report(const Study& study, const std::filesystem::path& path, const std::string& title,
                  std::span<const std::string> notes = {},
                  std::span<const std::string> charts = {});

/// Writes the learning-rate curve alone, as SVG on white. Throws UsageError for a study of a single
/// learning rate, and OutputError.
void write_lr_curve(const Study& study, const std::filesystem::path& path);

}  // namespace difftape::study
