#include "train/study/page/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "train/study/compare/tables.h"
#include "train/study/page/frame.h"

namespace difftape::study::page {

namespace {

/// Maximum number of values of an arm to show.
constexpr std::ptrdiff_t kValues = 8;

/// Joins distinct values in order of appearance; of many values, only the first and last.
std::string joined(const std::vector<std::string>& values) {
  if (std::ssize(values) <= kValues) return fmt::format("{}", fmt::join(values, ", "));
  return fmt::format("{}, …, {} ({} values)", values.front(), values.back(), values.size());
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

}  // namespace

std::string differences(const KeyValues& keys, std::span<const std::string> arms) {
  KeyValues different, same;
  for (const auto& [key, values] : keys) {
    const bool is_same = std::ranges::count(values, values.front()) == std::ssize(values);
    (is_same ? same : different).push_back({key, values});
    if (is_same) same.back().second.resize(1);
  }
  std::string html;
  if (different.empty()) {
    if (arms.size() > 1) html = "<p>No differences.</p>\n";
  } else {
    html = "<div class=\"scroll\"><table class=\"keys\"><thead><tr><td></td>";
    for (std::size_t arm = 0; arm < arms.size(); ++arm)
      html += "<th scope=\"col\">" + swatch(arm) + escape_html(arms[arm]) + "</th>";
    html += "</tr></thead><tbody>\n" + key_rows(different) + "</tbody></table></div>\n";
  }
  if (same.empty()) return html;
  html += fmt::format("<details><summary>{} {}</summary>", same.size(),
                      arms.size() > 1 ? "equal in every arm" : "values");
  return html + "<div class=\"scroll\"><table class=\"keys\"><tbody>\n" + key_rows(same) +
         "</tbody></table></div></details>";
}

KeyValues configs(const Study& study) {
  std::map<std::string, std::vector<std::vector<std::string>>> found;  // values per key and arm
  for (std::size_t arm = 0; arm < study.arms.size(); ++arm) {
    for (const Row* run : study.arms[arm].runs()) {
      for (const auto& [key, value] : run->config) {
        std::vector<std::vector<std::string>>& values = found[key];
        values.resize(study.arms.size());
        add_once(values[arm], value);
      }
    }
  }
  KeyValues keys;
  for (const auto& [key, values] : found) keys.emplace_back(key, mapped(values, joined));
  return keys;
}

std::string notices(const Study& study, std::span<const std::string> notes) {
  const auto runs = study.runs();
  const auto open = std::ssize(runs) - std::ranges::count_if(runs, &Row::complete);
  std::string html;
  for (const std::string& note : notes) html += notice(escape_html(note));
  if (open > 0) {
    html +=
        notice(fmt::format("{} of {} runs {} not finished; charts show them, but statistics do not "
                           "count them.",
                           open, runs.size(), open == 1 ? "is" : "are"));
  }
  return html;
}

}  // namespace difftape::study::page
