#include <fmt/format.h>

#include <algorithm>

#include "train/study/compare/claims/output.h"
#include "train/study/figures/forest.h"
#include "train/study/page/html.h"
#include "train/study/page/sections.h"

namespace difftape::study::page {

namespace {

/// The verdict that a cell begins with, "hint: " left out.
Verdict verdict_in(std::string_view cell) {
  constexpr std::string_view kHint = "hint: ";
  if (cell.starts_with(kHint)) cell.remove_prefix(kHint.size());
  const auto& all = kNames<Verdict>;
  const auto found = std::ranges::find_if(
      all, [&](const Named<Verdict>& each) { return cell.starts_with(each.name); });
  return found == all.end() ? Verdict::not_tested : found->value;
}

/// A full disc, a cross, two lines, an empty circle, a dash: read without colour.
std::string verdict_mark(std::string_view cell) {
  const char *kind = "open", *shape = "<path d=\"M2 6H10\"/>";
  switch (verdict_in(cell)) {
    case Verdict::supported:
      kind = "yes", shape = "<circle cx=\"6\" cy=\"6\" r=\"4.5\" fill=\"currentColor\"/>";
      break;
    case Verdict::contradicted:
      kind = "no", shape = "<path d=\"M2 2L10 10M10 2L2 10\"/>";
      break;
    case Verdict::equivalent:
      kind = "same", shape = "<path d=\"M2 4H10M2 8H10\"/>";
      break;
    case Verdict::undecided:
      shape = "<circle cx=\"6\" cy=\"6\" r=\"4\"/>";
      break;
    case Verdict::not_testable:
    case Verdict::not_tested:
      break;
  }
  return fmt::format(
      "<span class=\"verdict {}\"><svg viewBox=\"0 0 12 12\" aria-hidden=\"true\" fill=\"none\" "
      "stroke=\"currentColor\" stroke-width=\"2\">{}</svg>{}</span>",
      kind, shape, escape_html(cell));
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
    const auto count =
        std::ranges::count(claims.results, Verdict::not_tested, &ClaimResult::verdict);
    html += fmt::format("<details><summary>{} {} that these runs do not test</summary>\n", count,
                        count == 1 ? "claim" : "claims");
    for (const std::string& line : others) html += muted(line);
    html += "</details>\n";
  }
  for (const std::string& line : claims_notes(claims.file, claims.results)) html += muted(line);
  return html;
}

}  // namespace difftape::study::page
