#include "train/study/page/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "train/run/config/fields.h"
#include "train/study/compare/tables.h"
#include "train/study/page/frame.h"
#include "train/system/child.h"
#include "train/system/json.h"

namespace difftape::study::page {

namespace {

using Json = nlohmann::ordered_json;

/// Maximum number of entries of a list, such as input files, and of values of an arm to show.
constexpr std::ptrdiff_t kListed = 3, kValues = 8;
constexpr std::size_t kCommands = 4;

/// Flattens objects to keys like "build/version"; keeps the beginning of lists.
void flatten(const Json& json, const std::string& key, Json& flat) {
  if (json.is_object()) {
    for (const auto& [name, value] : json.items()) {
      flatten(value, key.empty() ? name : key + "/" + name, flat);
    }
  } else if (json.is_array() && std::ssize(json) > kListed) {
    const Json first(json.begin(), json.begin() + kListed);
    flat[key] = fmt::format("{} and {} more", system::json_text(first), std::ssize(json) - kListed);
  } else {
    flat[key] = json;
  }
}

/// Joins distinct values in order of appearance; of many values, only the first and last.
std::string joined(const std::vector<std::string>& values) {
  if (std::ssize(values) <= kValues) return fmt::format("{}", fmt::join(values, ", "));
  return fmt::format("{}, …, {} ({} values)", values.front(), values.back(), values.size());
}

/// Arranges the values of flat JSON objects, one per run, with one column per arm.
KeyValues side_by_side(const Study& study, Json (*object_of)(const RunRecord&)) {
  std::vector<std::string> names;
  std::vector<std::vector<std::vector<std::string>>> found;  // values per key and arm
  for (std::size_t arm = 0; arm < study.arms.size(); ++arm) {
    for (const RunRecord* run : study.arms[arm].runs()) {
      const Json object = object_of(*run);
      for (const auto& [key, value] : object.items()) {
        const std::size_t at = add_once(names, key);
        if (at == found.size()) found.emplace_back(study.arms.size());
        add_once(found[at][arm],
                 value.is_string() ? value.get<std::string>() : system::json_text(value));
      }
    }
  }
  KeyValues keys;
  for (std::size_t i = 0; i < names.size(); ++i)
    keys.emplace_back(names[i], mapped(found[i], joined));
  return keys;
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
  return side_by_side(study, [](const RunRecord& run) {
    Json config = Json::object();
    for (const auto& [key, value] : run.values()) {
      if (!run::has_flag(key, run::kNamesRun)) config[key] = value;
    }
    return config;
  });
}

KeyValues environments(const Study& study) {
  return side_by_side(study, [](const RunRecord& run) {
    Json env = run.env, flat = Json::object();
    env.erase("command");
    flatten(env, "", flat);
    return flat;
  });
}

std::string commands(const Study& study) {
  std::vector<std::string> lines;
  for (const RunRecord* run : study.runs()) {
    const std::string line =
        system::shell_command(run->env.at("command").get<std::vector<std::string>>());
    if (!line.empty()) add_once(lines, line);  // empty for a row of an index
  }
  std::string html;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i == kCommands) {
      html += fmt::format("<details><summary>{} more</summary>\n", lines.size() - kCommands);
    }
    html += "<pre>" + escape_html(lines[i]) + "</pre>\n";
  }
  return html + (lines.size() > kCommands ? "</details>\n" : "");
}

std::string notices(const Study& study, std::span<const std::string> notes) {
  const auto runs = study.runs();
  const auto open = std::ssize(runs) - std::ranges::count_if(runs, &RunRecord::complete);
  std::string html;
  for (const std::string& note : notes) html += notice(escape_html(note));
  if (const std::string tasks = tasks_note(study); !tasks.empty())
    html += notice(escape_html(tasks));
  if (open > 0) {
    html +=
        notice(fmt::format("{} of {} runs {} not finished; charts show them, but statistics do not "
                           "count them.",
                           open, runs.size(), open == 1 ? "is" : "are"));
  }
  return html;
}

}  // namespace difftape::study::page
