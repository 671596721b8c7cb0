#pragma once
// Writes the comparison of a study. The page is self-contained (styles, scripts, data), stays below
// 2 MB for any length of run, and is readable without JavaScript.

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace difftape::study {

struct Study;
struct JudgedClaims;

inline constexpr const char* kPage = "report.html";

/// Parts of a comparison besides the study.
struct PageParts {
  std::vector<std::string> notes = {};   ///< shown at the top, for example about omitted runs
  const JudgedClaims* claims = nullptr;  ///< null: there are no claims
};

/// Writes the page of the studies. Throws OutputError.
void write_report(std::span<const Study> studies, const std::filesystem::path& path,
                  const std::string& title, const PageParts& parts = {});

/// Creates the folder of a comparison unless it exists. Throws OutputError if it contains files,
/// but no page of difftape, so that nothing of others is replaced.
void require_comparison_folder(const std::filesystem::path& folder);

/// Writes report.html and summary.txt; verdicts.csv and forest.svg with claims; lr_curve.svg and
/// lr_optimum.csv if an arm has several learning rates. Removes those that do not apply any more.
/// Throws OutputError.
void write_comparison(std::span<const Study> studies, const std::string& title,
                      const PageParts& parts, const std::filesystem::path& folder);

}  // namespace difftape::study
