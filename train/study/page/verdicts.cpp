#include <fmt/format.h>

#include "train/study/compare/claims/output.h"
#include "train/study/figures/forest.h"
#include "train/study/page/html.h"
#include "train/study/page/sections.h"

namespace difftape::study::page {

namespace {

/// A table of claims, its last column the verdict behind its mark in the forest plot. On a narrow
/// screen a row becomes a block of labelled cells.
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
  const std::vector<ForestRow> rows = forest_rows(claims.results);
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
