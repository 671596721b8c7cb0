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

std::string subtitle_of(const Study& study) {
  const auto runs = study.runs();
  const auto diverged = std::ranges::count_if(runs, &RunRecord::diverged);
  std::set<std::uint64_t> seeds;
  for (const RunRecord* run : runs) seeds.insert(run->seed);
  const auto count = [](std::size_t n, const char* what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
  };
  std::string text = count(runs.size(), "run");
  const char* separator = ": ";
  const std::pair<std::size_t, const char*> factors[] = {{study.arms.size(), "arm"},
                                                         {study.tasks.size(), "task"},
                                                         {study.lrs().size(), "peak learning rate"},
                                                         {seeds.size(), "seed"}};
  for (const auto& [n, what] : factors) {
    if (n < 2) continue;
    text += separator + count(n, what);
    separator = ", ";
  }
  text += fmt::format(". {} diverged.", diverged == 0 ? "None" : std::to_string(diverged));
  return study.arms.size() < 2 ? text
                               : fmt::format("{} Baseline: {}.", text, study.baseline_name());
}

/// Makes the page with all sections for which there is data. Notes come first.
Framed make_page(const Study& study, const std::string& title, const PageParts& parts,
                 const std::filesystem::path& page_dir) {
  const std::vector<LrCurve> curves = lr_curves(study);
  const Input input{study, curves, best_lr(study, curves), select_charts(study, parts.charts)};
  const std::vector<std::string> arms = study.arm_names();
  std::vector<std::string> notes = parts.notes;
  notes.insert(notes.end(), input.charts.notes.begin(), input.charts.notes.end());
  const Section drawn = curves_section(input), grid = grid_section(study),
                accuracy = accuracy_section(input), layers = layers_section(input),
                attention = attention_section(input);
  Framed page{.title = title,
              .headline = headline(study),
              .subtitle = subtitle_of(study),
              .sections = notices(study, notes),
              .data = drawn.data,
              .libraries = {assets::dygraph_js(), assets::synchronizer_js()},
              .refresh_seconds = parts.refresh_seconds};
  page.add("runs", "Runs", runs_section(study, page_dir));
  page.add("learning-rate", "Learning rate", lr_section(study, curves));
  page.add("curves", "Curves", drawn.html);
  page.add("grid", "Grid", grid.html);
  page.add("verdicts", "Verdicts", parts.claims ? verdicts_section(*parts.claims) : "");
  page.add("accuracy", "Accuracy", accuracy.html);
  page.add("layers", "Layers", layers.html);
  page.add("attention", "Attention", attention.html);
  page.add("config", "Config", differences(configs(study), arms));
  page.add("commands", "Commands", commands(study));
  page.add("environment", "Environment", differences(environments(study), arms));
  page.data["maps"] = {{"grid", grid.data}, {"accuracy", accuracy.data}, {"layers", layers.data}};
  page.data["attention"] = attention.data;
  return page;
}

}  // namespace

void write_report(const Study& study, const std::filesystem::path& path, const std::string& title,
                  const PageParts& parts) {
  const page::Framed page = make_page(study, title, parts, path.parent_path());
  system::replace_text(path, with_loss_unit(study, page_text(page)));
}

bool write_forest(const Study& study, const JudgedClaims& claims,
                  const std::filesystem::path& path) {
  const std::string forest = forest_svg(forest_rows(claims.results), SvgKind::standalone);
  if (!forest.empty()) system::replace_text(path, with_loss_unit(study, forest));
  return !forest.empty();
}

void write_lr_curve(const Study& study, const std::filesystem::path& path) {
  if (!study.is_swept()) {
    throw UsageError(
        "report: --svg needs an arm with at least two peak learning rates; sweep optim.lr, or "
        "remove --svg");
  }
  const std::string curve = lr_curve_svg(lr_curves(study), SvgKind::standalone);
  system::replace_text(path, with_loss_unit(study, curve));
}

void write_lr_optima(const Study& study, const std::filesystem::path& page) {
  system::replace_text(page.parent_path() / kLrOptimumFile, lr_optima_csv(lr_curves(study)));
}

}  // namespace difftape::study
