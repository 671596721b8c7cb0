#include "train/study/compare/builds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace difftape::study {

namespace {

/// A key of `build` in env.json; empty if it is not there.
std::string build_value(const RunRecord& run, const char* key) {
  const auto build = run.env.find("build");
  if (build == run.env.end() || !build->is_object()) return "";
  const auto value = build->find(key);
  return value != build->end() && value->is_string() ? value->get<std::string>() : "";
}

/// Which of the keys of a build, besides its version, runs have different values of. A run that
/// does not know a key, as those of older versions, differs in nothing by it.
std::vector<const char*> differing_build_keys(std::span<const RunRecord> runs) {
  std::vector<const char*> keys;
  for (const char* key :
       {"commit", "compiler", "build_type", "precision", "gemm_backend", "bf16_backend"}) {
    std::set<std::string> values;
    for (const RunRecord& run : runs) values.insert(build_value(run, key));
    values.erase("");
    if (values.size() > 1) keys.push_back(key);
  }
  return keys;
}

}  // namespace

std::string builds_note(std::span<const RunRecord> runs) {
  const std::vector<const char*> keys = differing_build_keys(runs);
  if (keys.empty()) return "";
  std::vector<std::pair<std::string, std::size_t>> builds;  // with the number of their runs
  for (const RunRecord& run : runs) {
    std::vector<std::string> values;
    for (const char* key : keys) {
      const std::string value = build_value(run, key);
      values.push_back(value.empty() ? fmt::format("unknown {}", key) : value);
    }
    const std::string name = fmt::to_string(fmt::join(values, " "));
    auto found = std::ranges::find(builds, name, [](const auto& each) { return each.first; });
    if (found == builds.end()) found = builds.insert(found, {name, 0});
    found->second += 1;
  }
  std::vector<std::string> parts;
  for (const auto& [name, count] : builds) {
    parts.push_back(fmt::format("{} ({} {})", name, count, count == 1 ? "run" : "runs"));
  }
  const bool commits = keys.size() == 1 && std::string_view(keys.front()) == "commit";
  return fmt::format("runs of {} {}: {}; what they compute may differ", builds.size(),
                     commits ? "commits" : "builds", fmt::join(parts, ", "));
}

}  // namespace difftape::study
