#include "train/study/page/html.h"

#include <fmt/format.h>

#include <algorithm>

#include "train/study/figures/drawing.h"

namespace difftape::study::page {

std::string note(const std::string& html) { return "<p class=\"muted note\">" + html + "</p>\n"; }

std::string notice(const std::string& html) { return "<p class=\"notice\">" + html + "</p>\n"; }

namespace {

constexpr std::string_view kPlain =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.,/";

bool is_plain(char c, std::string_view more) {
  return kPlain.find(c) != std::string_view::npos || more.find(c) != std::string_view::npos;
}

}  // namespace

std::string shell_command(std::span<const std::string> words) {
  std::string command;
  for (const std::string& word : words) {
    std::string quoted;
    for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
    const bool plain =
        !word.empty() && std::ranges::all_of(word, [](char c) { return is_plain(c, "=:+@%"); });
    command += (command.empty() ? "" : " ") + (plain ? word : "'" + quoted + "'");
  }
  return command;
}

std::string uri_text(std::string_view text) {
  std::string uri;
  for (const char c : text) {
    uri +=
        is_plain(c, "") ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri;
}

std::string csv_link(std::string_view name, std::string_view csv) {
  return fmt::format(
      "<a class=\"csv\" download=\"{}\" href=\"data:text/csv;charset=utf-8,{}\">CSV</a>",
      escape_html(name), uri_text(csv));
}

std::string swatch(std::size_t arm) {
  return fmt::format("<span class=\"swatch arm-{}{}\"></span>", arm % svg::kArmColors,
                     arm < svg::kArmColors ? "" : " hollow");
}

std::string table_head(const system::Table& table) {
  std::string groups, names;
  bool grouped = false;
  for (const system::ColumnGroup& group : column_groups(table.columns)) {
    grouped = grouped || !group.label.empty();
    groups += group.label.empty() ? "<td></td>"
                                  : fmt::format("<th scope=\"colgroup\" colspan=\"{}\">{}</th>",
                                                group.end - group.begin, escape_html(group.label));
  }
  for (const system::Column& column : table.columns) {
    names += fmt::format("<th scope=\"col\"{}>{}</th>", column.left ? " class=\"left\"" : "",
                         escape_html(column.name));
  }
  return fmt::format("<thead>\n{}<tr>{}</tr>\n</thead>\n",
                     grouped ? "<tr>" + groups + "</tr>\n" : "", names);
}

std::string marked_table(const system::Table& table, std::span<const RowMark> marks) {
  system::Table all = table;
  const bool linked = std::ranges::any_of(marks, [](auto& mark) { return !mark.links.empty(); });
  if (linked) all.columns.push_back({"", "files", true});
  std::string html =
      "<div class=\"scroll\">\n<table class=\"summary\">\n" + table_head(all) + "<tbody>\n";
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const auto& row = table.rows[r];
    html += fmt::format("<tr><th scope=\"row\">{}{}</th>",
                        marks[r].arm == RowMark::kNoArm ? "" : swatch(marks[r].arm),
                        escape_html(row[0]));
    for (std::size_t c = 1; c < row.size(); ++c) {
      const bool diverged = marks[r].diverged && table.columns[c].name == "state";
      html += fmt::format("<td class=\"{}{}\">{}</td>", table.columns[c].left ? "left" : "number",
                          diverged ? " diverged" : "", escape_html(row[c]));
    }
    if (linked) html += "<td class=\"left files\">" + marks[r].links + "</td>";
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table>\n</div>\n";
}

}  // namespace difftape::study::page
