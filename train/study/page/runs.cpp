#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "train/study/compare/claims/output.h"
#include "train/study/compare/tables.h"
#include "train/study/figures/figures.h"
#include "train/study/page/frame.h"
#include "train/study/page/sections.h"
#include "train/system/files.h"

namespace difftape::study::page {

namespace {

namespace fs = std::filesystem;

/// Maximum number of runs for which the first table has one row per run.
constexpr std::size_t kFewRuns = 12;

constexpr const char* kFigureNote =
    "Lines are means over the seeds of the ladder, and bands reach from the lowest to the highest "
    "seed. Stars mark lr* with its 95 % interval. Hollow marks and \"of the ladder\" come from the "
    "seeds that chose the rates. A shift of the optimum does not change the sensitivity, so read "
    "it "
    "with the curve.";

/// Returns links to the files of a run, relative to the directory of the page.
std::string file_links(const fs::path& run, const fs::path& page_dir) {
  std::string links;
  constexpr std::pair<const char*, const char*> kFiles[] = {
      {"config.yaml", "config"}, {"metrics.jsonl", "metrics"}, {"stdout.log", "log"}};
  for (const auto& [name, word] : kFiles) {
    std::error_code ignored;
    const fs::path file = (fs::absolute(run, ignored) / name).lexically_normal();
    if (!system::is_there(file)) continue;
    const fs::path from = fs::absolute(page_dir.empty() ? "." : page_dir, ignored);
    const fs::path target = file.lexically_proximate(from.lexically_normal());
    links += fmt::format("<a href=\"{}\">{}</a>", escape_html(uri_text(target.string())), word);
  }
  return links;
}

std::string per_run_table(const Study& study, const fs::path& page_dir) {
  std::vector<RowMark> marks;
  for (std::size_t arm = 0; arm < study.arms.size(); ++arm) {
    for (const Row* run : study.arms[arm].runs())
      marks.push_back({arm, run->diverged(), file_links(run->dir, page_dir)});
  }
  const system::Table table = run_table(study);
  return marked_table(table, marks) + note(escape_html(columns_note(study, table)));
}

/// Returns a table whose rows begin with the name of an arm.
std::string with_arms(const system::Table& table, const Study& study) {
  const std::vector<std::string> names = study.arm_names();
  const auto marks = mapped(table.rows, [&](const auto& row) {
    return RowMark{static_cast<std::size_t>(std::ranges::find(names, row[0]) - names.begin())};
  });
  return marked_table(table, marks);
}

std::string lr_csv(const std::vector<LrCurve>& curves) {
  std::string csv = "task,arm,lr,mean,half_width,runs,diverged,values\n";
  for (const LrCurve& curve : curves) {
    for (const LrPoint& point : curve.points) {
      csv += system::csv_line(std::vector<std::string>{
          curve.task, curve.arm, fmt::to_string(point.lr), fmt::format("{:.6g}", point.loss.mean),
          fmt::format("{:.6g}", point.loss.half_width), fmt::to_string(point.runs),
          fmt::to_string(point.diverged), fmt::format("{:.6g}", fmt::join(point.values, " "))});
    }
  }
  return csv;
}

}  // namespace

namespace {

std::string runs_of_task(const Study& study, const fs::path& page_dir) {
  const std::size_t runs = study.runs().size();
  if (runs == study.arms.size() && runs <= kFewRuns) return per_run_table(study, page_dir);
  const system::Table table = arm_table(study, lr_curves(study));
  return with_arms(table, study) + note(escape_html(columns_note(study, table))) +
         fmt::format("<details><summary>Every run ({})</summary>\n", runs) +
         per_run_table(study, page_dir) + "</details>\n";
}

}  // namespace

std::string runs_section(std::span<const Study> studies, const fs::path& page_dir) {
  std::string html;
  for (const Study& study : studies) {
    if (studies.size() > 1) html += fmt::format("<h3>{}</h3>\n", escape_html(study.task));
    html += runs_of_task(study, page_dir);
  }
  return html;
}

std::string lr_section(std::span<const Study> studies) {
  if (std::ranges::none_of(studies, &Study::is_swept)) return "";
  const std::vector<LrCurve> curves = lr_curves(studies);
  const bool wide = std::ranges::any_of(curves, [&](const LrCurve& each) {
    return each.task != curves[0].task || each.d_model != curves[0].d_model;
  });
  std::string tables, refusals;
  for (const Study& study : studies) {
    const std::vector<LrCurve> of_task = lr_curves(study);
    const system::Table table = lr_table(of_task);
    if (table.rows.empty()) continue;
    if (studies.size() > 1) tables += fmt::format("<h3>{}</h3>\n", escape_html(study.task));
    tables += with_arms(table, study);
    for (const std::string& refusal : lr_refusals(of_task)) refusals += note(escape_html(refusal));
  }
  return fmt::format(
      "<div{}>\n<figure><figcaption>Final validation loss <span class=\"muted\">{}</span> "
      "{}</figcaption>\n{}</figure>\n<div>\n{}</div>\n</div>\n{}{}",
      wide ? "" : " class=\"beside\"", curves.front().unit,
      csv_link("learning_rate.csv", lr_csv(curves)), lr_curve_svg(curves, SvgKind::inlined), tables,
      note(escape_html(lr_note(studies.front())) + " " + kFigureNote), refusals);
}

namespace {

/// Returns a table of claims; its last column shows the mark of the forest plot and the verdict.
std::string verdict_cards(const system::Table& table, std::span<const ForestRow> rows) {
  std::string html = "<table class=\"verdicts\">\n" + table_head(table) + "<tbody>\n";
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto& row = table.rows[r];
    html += "<tr><th scope=\"row\">" + escape_html(row[0]) + "</th>";
    for (std::size_t c = 1; c < row.size(); ++c) {
      const std::string text = escape_html(row[c]);
      html += fmt::format(
          "<td class=\"left\" data-label=\"{}\">{}</td>", escape_html(table.columns[c].name),
          c + 1 < row.size() ? text
                             : fmt::format("<span class=\"verdict\">{}{}</span>",
                                           svg::verdict_icon(svg::look_of(rows[r].verdict)), text));
    }
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table>";
}

}  // namespace

std::string verdicts_section(const JudgedClaims& claims) {
  std::string html;
  const std::vector<ForestRow> rows = forest_rows(claims);
  if (!rows.empty()) {
    html += "<figure>" + forest_svg(rows, SvgKind::inlined) + "</figure>\n" +
            verdict_cards(verdict_table(claims.results), rows);
  }
  const std::vector<std::string> others = untested(claims.results);
  if (!others.empty()) {
    const std::size_t count = claims.results.size() - rows.size();
    html += fmt::format("<details><summary>{} {} that these runs do not test</summary>\n", count,
                        count == 1 ? "claim" : "claims");
    for (const std::string& line : others) html += note(escape_html(line));
    html += "</details>\n";
  }
  for (const std::string& line : claims_notes(claims.file, claims.results))
    html += note(escape_html(line));
  return html;
}

}  // namespace difftape::study::page
