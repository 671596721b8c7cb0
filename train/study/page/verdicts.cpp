#include <fmt/format.h>

#include <algorithm>

#include "train/study/compare/claims/output.h"
#include "train/study/figures/forest.h"
#include "train/study/page/html.h"
#include "train/study/page/sections.h"

namespace difftape::study::page {

namespace {

/// A cell that begins with a verdict, behind its mark in the forest plot.
std::string verdict_mark(std::string_view cell) {
  return fmt::format("<span class=\"verdict\">{}{}</span>", svg::verdict_icon(svg::look_of(cell)),
                     escape_html(cell));
}

bool is_verdict_column(const system::Column& column) { return column.name == "verdict"; }

}  // namespace

std::string verdict_cards(const system::Table& table) {
  std::string html = "<table class=\"verdicts\">\n" + table_head(table) + "<tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr><th scope=\"row\">" + escape_html(row[0]) + "</th>";
    for (std::size_t c = 1; c < row.size(); ++c) {
      html += fmt::format(
          "<td class=\"{}\" data-label=\"{}\">{}</td>", table.columns[c].left ? "left" : "number",
          escape_html(table.columns[c].name),
          is_verdict_column(table.columns[c]) ? verdict_mark(row[c]) : escape_html(row[c]));
    }
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table>";
}

std::string verdicts_section(const JudgedClaims& claims) {
  const auto muted = [](const std::string& text) {
    return "<p class=\"muted note\">" + escape_html(text) + "</p>\n";
  };
  std::string html;
  if (const std::string forest = forest_svg(forest_rows(claims.results), SvgKind::inlined);
      !forest.empty()) {
    html += "<figure>" + forest + "</figure>\n";
  }
  const system::Table verdicts = verdict_table(claims.results);
  if (!verdicts.rows.empty()) html += verdict_cards(verdicts);
  const std::vector<std::string> others = untested(claims.results);
  if (!others.empty()) {
    const auto count = std::ranges::count_if(
        claims.results, [](const auto& each) { return !each.verdict.is_tested(); });
    html += fmt::format("<details><summary>{} {} that these runs do not test</summary>\n", count,
                        count == 1 ? "claim" : "claims");
    for (const std::string& line : others) html += muted(line);
    html += "</details>\n";
  }
  for (const std::string& line : claims_notes(claims.file, claims.results)) html += muted(line);
  return html;
}

}  // namespace difftape::study::page
