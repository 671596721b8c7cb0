#include <fmt/format.h>

#include <algorithm>

#include "train/study/compare/claims/output.h"
#include "train/study/page/html.h"
#include "train/study/page/sections.h"

namespace difftape::study::page {

namespace {

/// The verdict that a cell begins with.
Verdict verdict_in(std::string_view cell) {
  const auto& all = kNames<Verdict>;
  const auto found = std::ranges::find_if(
      all, [&](const Named<Verdict>& each) { return cell.starts_with(each.name); });
  return found == all.end() ? Verdict::not_tested : found->value;
}

/// A full disc, a cross, an empty circle, a dash: read without colour.
std::string verdict_mark(std::string_view cell) {
  const char *kind = "open", *shape = "<path d=\"M2 6H10\"/>";
  switch (verdict_in(cell)) {
    case Verdict::supported:
      kind = "yes", shape = "<circle cx=\"6\" cy=\"6\" r=\"4.5\" fill=\"currentColor\"/>";
      break;
    case Verdict::not_supported:
      kind = "no", shape = "<path d=\"M2 2L10 10M10 2L2 10\"/>";
      break;
    case Verdict::not_significant:
      kind = "same", shape = "<circle cx=\"6\" cy=\"6\" r=\"4\"/>";
      break;
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

std::string verdicts_section(const Study& study) {
  if (study.arms.size() < 2) return "";
  system::Table tested = verdict_table(evaluate(study)), untested{tested.columns, {}};
  const auto first = std::ranges::stable_partition(tested.rows, [](const auto& row) {
                       return verdict_in(row.back()) != Verdict::not_tested;
                     }).begin();
  untested.rows.assign(first, tested.rows.end());
  tested.rows.erase(first, tested.rows.end());
  std::string html = tested.rows.empty() ? "" : verdict_cards(tested);
  if (untested.rows.empty()) return html;
  return html +
         fmt::format("<details><summary>{} claims that these runs do not test</summary>\n",
                     untested.rows.size()) +
         verdict_cards(untested) + "</details>\n";
}

}  // namespace difftape::study::page
