#pragma once
// report.html: one page that compares runs. It holds everything it needs (styles, scripts, data),
// loads nothing, stays below 2 MB for any length of run, and its tables read without JavaScript.

#include <filesystem>
#include <span>
#include <string>

namespace difftape {

/// Writes the page; the first run is the baseline. Throws UsageError without runs, MissingInput or
/// DataError for a directory that is not a run, OutputError if `path` cannot be written.
void write_report(std::span<const std::filesystem::path> run_dirs,
                  const std::filesystem::path& path, const std::string& title);

}  // namespace difftape
