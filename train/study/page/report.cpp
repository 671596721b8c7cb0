#include "train/study/page/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "train/study/compare/answer.h"
#include "train/study/compare/claims/output.h"
#include "train/study/compare/lr_optima.h"
#include "train/study/compare/tables.h"
#include "train/study/figures/forest.h"
#include "train/study/figures/lr_curve.h"
#include "train/study/figures/plots.h"
#include "train/study/page/html.h"
#include "train/study/page/sections.h"
#include "train/system/files.h"
#include "train/system/text_table.h"

namespace difftape::study {

namespace {

using namespace page;

constexpr const char* kControls = R"(<div id="controls" hidden>
<div id="arms" role="group" aria-label="Arms"></div>
<label id="lr-label" hidden>Peak learning rate <select id="lr"></select></label>
<label id="x-label" hidden>Along the axis <select id="x"></select></label>
<label>Smoothing <select id="smoothing"><option value="0">none</option>
<option value="5">5 steps</option><option value="20">20 steps</option>
<option value="100">100 steps</option></select></label>
<button type="button" id="reset">Reset zoom</button>
</div>
<div id="charts"></div>
<p class="muted note" id="hint" hidden>Drag across a chart to zoom, double-click to zoom out; the
charts follow each other.</p>
)";

constexpr const char* kCurvesNote =
    "Runs that differ in their seed alone are one line, the mean over the seeds that reached a "
    "step; the band is from the smallest to the largest of them, not a confidence interval. ▼ "
    "marks a spike of one run, after the first tenth of its steps as in the tables, × the step at "
    "which a run diverged. Long curves keep the lowest and the highest value of each stretch.";

std::string attention_legend() {
  const std::vector<svg::BarTick> map = {{0, "0"}, {0.316, ".1"}, {0.707, ".5"}, {1, "1"}};
  const std::vector<svg::BarTick> difference = {
      {0, "−1"}, {0.25, "−.25"}, {0.5, "0"}, {0.75, ".25"}, {1, "1"}};
  return fmt::format(
      "<div class=\"legend\"><span>attention {}</span> <span>difference {}</span></div>\n",
      color_bar(svg::sequential, 0, map).inlined(),
      color_bar(svg::diverging, -1, difference).inlined());
}

std::string attention_html(const AttentionSection& attention) {
  if (attention.data.empty()) return attention.html;
  return attention_legend() + "<div class=\"heads\">\n" + attention.html + "</div>\n" +
         note(
             "Queries run down, keys across, on a square-root scale. Of the last layer: the head "
             "that attends to the first token most, and head 0. Applied is what weighs the "
             "values: of two maps |A1 − λ A2| with rows that add up to 1.");
}

std::string layers_section(const Input& input) {
  const std::string figures = layer_figures(input);
  if (figures.empty()) return "";
  return figures +
         note(fmt::format("The first complete run of each arm{}. A cell is the mean of a stretch "
                          "of logged steps, its number the title of the cell.",
                          escape_html(at_lr(input))));
}

std::string subtitle_of(const Study& study) {
  std::set<std::uint64_t> seeds;
  const auto runs = study.runs();
  std::size_t diverged = 0;
  for (const RunRecord* run : runs) {
    seeds.insert(run->seed);
    diverged += run->diverged() ? 1 : 0;
  }
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

void add(Framed& page, const char* id, const char* title, const std::string& body) {
  if (body.empty()) return;
  page.navigation += fmt::format("<a href=\"#{}\">{}</a>\n", id, title);
  page.sections += fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n", id, title, body);
}

/// Everything that can be shown of a study; what was not logged is left out. Notes stand at the
/// top.
Framed make_page(const Study& study, const std::string& title, const PageParts& parts,
                 const std::filesystem::path& page_dir) {
  const std::vector<LrCurve> curves = lr_curves(study);
  const Input input{study, curves, best_lr(study, curves), select_charts(study, parts.charts)};
  std::vector<std::string> notes = parts.notes;
  notes.insert(notes.end(), input.charts.notes.begin(), input.charts.notes.end());
  const std::vector<std::string> arms = arm_names(study);
  const AttentionSection attention = attention_section(input);
  const GridSection grid = grid_section(study);
  Framed page{.title = title,
              .answer = answer(study),
              .subtitle = subtitle_of(study),
              .sections = notices(study, notes),
              .libraries = {assets::dygraph_js(), assets::synchronizer_js()},
              .refresh_seconds = parts.refresh_seconds};
  add(page, "runs", "Runs", runs_section(study, page_dir));
  add(page, "learning-rate", "Learning rate", lr_section(study, curves));
  add(page, "curves", "Curves",
      input.charts.curves.empty() ? "" : kControls + curve_figures(input) + note(kCurvesNote));
  add(page, "grid", "Grid", grid.html);
  add(page, "verdicts", "Verdicts", parts.claims ? verdicts_section(*parts.claims) : "");
  add(page, "accuracy", "Accuracy", accuracy_figure(input));
  add(page, "layers", "Layers", layers_section(input));
  add(page, "attention", "Attention", attention_html(attention));
  add(page, "config", "Config", differences(configs(study), arms));
  add(page, "commands", "Commands", commands(study));
  add(page, "environment", "Environment", differences(environments(study), arms));
  page.data = curve_data(input);
  page.data["attention"] = attention.data;
  if (!grid.html.empty()) {
    page.data["grid"] = grid.data;
    page.libraries.push_back(assets::d3_js());
  }
  return page;
}

}  // namespace

void write_report(const Study& study, const std::filesystem::path& path, const std::string& title,
                  const PageParts& parts) {
  write_page(path, make_page(study, title, parts, path.parent_path()));
}

void write_run_list(const RunList& list, const std::filesystem::path& path,
                    const std::string& title, int refresh_seconds) {
  const auto none = nlohmann::ordered_json::array();
  Framed page{.title = title,
              .answer = list.states(),
              .data = {{"lrs", none},
                       {"lr", 0},
                       {"arms", none},
                       {"conditions", none},
                       {"charts", none},
                       {"attention", none}},
              .refresh_seconds = refresh_seconds};
  add(page, "runs", "Runs", run_list_section(list, path.parent_path()));
  write_page(path, page);
}

void write_forest(const JudgedClaims& claims, const std::filesystem::path& path) {
  const std::string forest = forest_svg(forest_rows(claims.results), SvgKind::standalone);
  if (!forest.empty()) system::replace_text(path, forest);
}

void write_lr_curve(const Study& study, const std::filesystem::path& path) {
  if (study.lrs().size() < 2) {
    throw UsageError(
        "report: a learning-rate curve needs runs of at least two peak learning rates; sweep "
        "optim.lr, or leave out --svg");
  }
  system::replace_text(path, lr_curve_svg(lr_curves(study), SvgKind::standalone));
}

void write_lr_optima(const Study& study, const std::filesystem::path& page) {
  system::replace_text(page.parent_path() / kLrOptimumFile, lr_optima_csv(lr_curves(study)));
}

}  // namespace difftape::study
