#include "train/study/page/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "train/study/compare/claims/output.h"
#include "train/study/compare/lr_curves.h"
#include "train/study/compare/tables.h"
#include "train/study/figures/figures.h"
#include "train/study/page/frame.h"
#include "train/study/page/sections.h"
#include "train/system/files.h"
#include "train/system/text_table.h"

namespace difftape::study {

namespace {

using namespace page;

std::string subtitle_of(const Study& study, std::size_t tasks) {
  const auto runs = study.runs();
  const auto diverged = std::ranges::count_if(runs, &Row::diverged);
  std::set<std::uint64_t> seeds;
  for (const Row* run : runs) seeds.insert(run->seed);
  const auto count = [](std::size_t n, const char* what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
  };
  std::string text = count(runs.size(), "run");
  const char* separator = ": ";
  const std::pair<std::size_t, const char*> factors[] = {{study.arms.size(), "arm"},
                                                         {tasks, "task"},
                                                         {study.lrs().size(), "peak learning rate"},
                                                         {seeds.size(), "seed"}};
  for (const auto& [n, what] : factors) {
    if (n < 2) continue;
    text += separator + count(n, what);
    separator = ", ";
  }
  text += fmt::format(". {} diverged.", diverged == 0 ? "None" : std::to_string(diverged));
  return study.arms.size() < 2 ? text : fmt::format("{} Baseline: {}.", text, study.baseline);
}

/// Makes the page with all sections for which there is data. Notes come first.
Framed make_page(std::span<const Study> studies, const std::string& title, const PageParts& parts,
                 const std::filesystem::path& page_dir) {
  const std::vector<LrCurve> curves = lr_curves(studies);
  const Study study = drawn_together(studies);
  const Input input{study, curves, best_lr(study, curves), select_charts(study)};
  const std::vector<std::string> arms = study.arm_names();
  const Section drawn = curves_section(input), accuracy = accuracy_section(input),
                layers = layers_section(input), attention = attention_section(input);
  Framed page{.title = title,
              .subtitle = subtitle_of(study, studies.size()),
              .sections = notices(study, parts.notes),
              .data = drawn.data};
  if (!drawn.html.empty()) page.libraries = {assets::dygraph_js(), assets::synchronizer_js()};
  page.add("runs", "Runs", runs_section(studies, page_dir));
  page.add("learning-rate", "Learning rate", lr_section(studies));
  page.add("curves", "Curves", drawn.html);
  page.add("verdicts", "Verdicts", parts.claims ? verdicts_section(*parts.claims) : "");
  page.add("accuracy", "Accuracy", accuracy.html);
  page.add("layers", "Layers", layers.html);
  page.add("attention", "Attention", attention.html);
  page.add("config", "Config", differences(configs(study), arms));
  page.data["maps"] = {{"accuracy", accuracy.data}, {"layers", layers.data}};
  page.data["attention"] = attention.data;
  return page;
}

constexpr const char* kMadeBy = "by difftape. This file is self-contained";

void replace_or_remove(const std::filesystem::path& file, const std::string& text) {
  std::error_code ignored;
  if (text.empty()) {
    std::filesystem::remove(file, ignored);
  } else {
    system::replace_text(file, text);
  }
}

}  // namespace

void write_report(std::span<const Study> studies, const std::filesystem::path& path,
                  const std::string& title, const PageParts& parts) {
  system::replace_text(path, page_text(make_page(studies, title, parts, path.parent_path())));
}

void require_comparison_folder(const std::filesystem::path& folder) {
  system::make_folder(folder.string());
  std::error_code error;
  if (std::filesystem::is_empty(folder, error) && !error) return;
  const std::filesystem::path page = folder / kPage;
  if (system::is_there(page) && system::read_text(page).find(kMadeBy) != std::string::npos) return;
  throw OutputError(fmt::format(
      "{} contains files, but no {} of difftape; choose a new or empty folder with --out",
      folder.string(), kPage));
}

void write_comparison(std::span<const Study> studies, const std::string& title,
                      const PageParts& parts, const std::filesystem::path& folder) {
  const JudgedClaims* claims = parts.claims;
  const std::vector<LrCurve> curves = lr_curves(studies);
  const bool swept = std::ranges::any_of(studies, &Study::is_swept);
  write_report(studies, folder / kPage, title, parts);
  replace_or_remove(folder / "summary.txt", study_text(studies, system::kTextWidth, claims));
  replace_or_remove(folder / "verdicts.csv", claims ? verdicts_csv(claims->results) : "");
  replace_or_remove(folder / "forest.svg",
                    claims ? forest_svg(forest_rows(*claims), SvgKind::standalone) : "");
  replace_or_remove(folder / "lr_curve.svg",
                    swept ? lr_curve_svg(curves, SvgKind::standalone) : "");
  replace_or_remove(folder / kLrOptimumFile, swept ? lr_optima_csv(curves) : "");
}

}  // namespace difftape::study
