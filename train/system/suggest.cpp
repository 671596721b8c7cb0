#include "train/system/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "train/system/files.h"

namespace difftape::system {
namespace {

namespace fs = std::filesystem;

bool near(int distance, std::string_view a, std::string_view b) {
  return distance <= std::max(1, static_cast<int>(std::max(a.size(), b.size())) / 3);
}

/// Returns a lower bound of the distance, from the lengths alone.
int least_distance(std::string_view a, std::string_view b) {
  return static_cast<int>(std::max(a.size(), b.size()) - std::min(a.size(), b.size()));
}

/// Splits "model.attention.kind" into "model.attention" and "kind".
std::pair<std::string_view, std::string_view> split_last(std::string_view key) {
  const auto dot = key.rfind('.');
  if (dot == std::string_view::npos) return {"", key};
  return {key.substr(0, dot), key.substr(dot + 1)};
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> before_last, last, row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    before_last = std::exchange(last, row);
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

namespace {

/// Returns the edit distance of two words that are near each other, or nothing.
std::optional<int> near_distance(std::string_view a, std::string_view b) {
  if (!near(least_distance(a, b), a, b)) return std::nullopt;
  const int distance = edit_distance(a, b);
  return near(distance, a, b) ? std::optional(distance) : std::nullopt;
}

}  // namespace

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string* best = nullptr;
  std::optional<int> least;
  for (const std::string& candidate : candidates) {
    const std::optional<int> distance = near_distance(word, candidate);
    if (!distance || (least && *distance >= *least)) continue;
    best = &candidate;
    least = distance;
  }
  return best ? fmt::format("; did you mean '{}'?", *best) : "";
}

std::string nearest_key(std::string_view key, const std::vector<std::string>& candidates) {
  constexpr int kOtherSection = 4;
  const auto [section, name] = split_last(key);
  std::string best;
  std::optional<int> least;
  for (const std::string& candidate : candidates) {
    const auto [known_section, known_name] = split_last(candidate);
    std::optional<int> cost = near_distance(name, known_name);
    if (!cost) continue;
    const bool other = least_distance(section, known_section) >= kOtherSection;
    *cost += other ? kOtherSection : std::min(edit_distance(section, known_section), kOtherSection);
    if (least && *cost >= *least) continue;
    best = candidate;
    least = cost;
  }
  return best;
}

std::string did_you_mean_file(const std::string& missing_path) {
  const fs::path path(missing_path);
  const fs::path folder =
      path.has_parent_path() ? here_or_shared(path.parent_path().string()) : ".";
  const std::string wanted = path.filename().string();
  std::vector<std::string> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file(ignored) && near_distance(name, wanted))
      files.push_back((path.parent_path() / name).string());
  }
  std::ranges::sort(files);
  return did_you_mean(missing_path, files);
}

}  // namespace difftape::system
