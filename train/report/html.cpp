#include "train/report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

namespace difftape {

namespace {

/// Colours that page.css defines; runs beyond repeat them, hollow here and dashed in the charts.
constexpr std::size_t kColors = 8;

std::string swatch(std::size_t run) {
  return fmt::format("<span class=\"swatch run-{}{}\"></span>", run % kColors,
                     run < kColors ? "" : " hollow");
}

std::string key_rows(const KeyValues& keys) {
  std::string html;
  for (const auto& [key, values] : keys) {
    html += "<tr><th scope=\"row\">" + escape_html(key) + "</th>";
    for (const std::string& value : values) html += "<td>" + escape_html(value) + "</td>";
    html += "</tr>\n";
  }
  return html;
}

bool same_everywhere(const std::vector<std::string>& values) {
  return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string html;
  for (const char c : text) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

std::string json_for_script(const nlohmann::ordered_json& json) {
  const std::string plain = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string safe;
  for (const char c : plain) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string fill_template(std::string_view text, const std::map<std::string, std::string>& values) {
  std::string filled;
  std::set<std::string> used;
  std::size_t begin = 0;
  for (std::size_t open; (open = text.find("{{", begin)) != std::string_view::npos;) {
    const std::size_t close = text.find("}}", open);
    if (close == std::string_view::npos) throw std::logic_error("template: {{ without }}");
    const std::string key(text.substr(open + 2, close - open - 2));
    const auto value = values.find(key);
    if (value == values.end()) throw std::logic_error("template: unknown key " + key);
    filled += text.substr(begin, open - begin);
    filled += value->second;
    used.insert(key);
    begin = close + 2;
  }
  for (const auto& [key, value] : values) {
    if (!used.contains(key)) throw std::logic_error("template: unused key " + key);
  }
  return filled.append(text.substr(begin));
}

std::string summary_table(const Table& table) {
  std::string html = "<table class=\"summary\">\n<thead>\n<tr>";
  const auto& columns = table.columns;
  for (const ColumnGroup& group : column_groups(columns)) {
    html += group.label.empty() ? "<td></td>"
                                : fmt::format("<th scope=\"colgroup\" colspan=\"{}\">{}</th>",
                                              group.end - group.begin, escape_html(group.label));
  }
  html += "</tr>\n<tr>";
  for (const Column& column : columns) {
    html += fmt::format("<th scope=\"col\"{}>{}</th>", column.left ? " class=\"left\"" : "",
                        escape_html(column.name));
  }
  html += "</tr>\n</thead>\n<tbody>\n";
  for (std::size_t run = 0; run < table.rows.size(); ++run) {
    const auto& row = table.rows[run];
    html += "<tr><th scope=\"row\">" + swatch(run) + escape_html(row[0]) + "</th>";
    for (std::size_t c = 1; c < row.size(); ++c) {
      const bool alert = row[c].starts_with("diverged");
      html += fmt::format("<td class=\"{}{}\">{}</td>", columns[c].left ? "left" : "number",
                          alert ? " diverged" : "", escape_html(row[c]));
    }
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table>";
}

std::string differences(const KeyValues& keys, std::span<const std::string> runs) {
  KeyValues different, same;
  for (const auto& [key, values] : keys) {
    if (same_everywhere(values)) {
      same.push_back({key, {values.front()}});
    } else {
      different.push_back({key, values});
    }
  }
  std::string html;
  if (different.empty()) {
    if (runs.size() > 1) html = "<p>No differences.</p>\n";
  } else {
    html = "<div class=\"scroll\"><table class=\"keys\"><thead><tr><td></td>";
    for (std::size_t run = 0; run < runs.size(); ++run) {
      html += "<th scope=\"col\">" + swatch(run) + escape_html(runs[run]) + "</th>";
    }
    html += "</tr></thead><tbody>\n" + key_rows(different) + "</tbody></table></div>\n";
  }
  if (same.empty()) return html;
  html += fmt::format("<details><summary>{} {}</summary>", same.size(),
                      runs.size() > 1 ? "the same in every run" : "values");
  return html + "<div class=\"scroll\"><table class=\"keys\"><tbody>\n" + key_rows(same) +
         "</tbody></table></div></details>";
}

std::string shell_command(std::span<const std::string> words) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  std::string command;
  for (const std::string& word : words) {
    if (!command.empty()) command += ' ';
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      command += word;
      continue;
    }
    command += '\'';
    for (const char c : word) {
      if (c == '\'') {
        command += "'\\''";
      } else {
        command += c;
      }
    }
    command += '\'';
  }
  return command;
}

}  // namespace difftape
