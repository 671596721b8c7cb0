#include "train/system/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

namespace difftape::system {
namespace {

namespace fs = std::filesystem;

bool near(int distance, std::string_view a, std::string_view b) {
  return distance <= std::max(1, static_cast<int>(std::max(a.size(), b.size())) / 3);
}

/// What any two words of these lengths have as their distance at least.
int least_distance(std::string_view a, std::string_view b) {
  return static_cast<int>(std::max(a.size(), b.size()) - std::min(a.size(), b.size()));
}

/// "model.attention.kind" into "model.attention" and "kind".
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
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string* best = nullptr;
  int best_distance = 0;
  for (const std::string& candidate : candidates) {
    if (!near(least_distance(word, candidate), word, candidate)) continue;
    const int distance = edit_distance(word, candidate);
    if (near(distance, word, candidate) && (!best || distance < best_distance)) {
      best = &candidate;
      best_distance = distance;
    }
  }
  return best ? fmt::format("; did you mean '{}'?", *best) : "";
}

std::string nearest_key(std::string_view key, const std::vector<std::string>& candidates) {
  constexpr int kOtherSection = 4;
  const auto [section, name] = split_last(key);
  std::string best;
  int best_cost = 0;
  for (const std::string& candidate : candidates) {
    const auto [known_section, known_name] = split_last(candidate);
    if (!near(least_distance(name, known_name), name, known_name)) continue;
    const int name_cost = edit_distance(name, known_name);
    if (!near(name_cost, name, known_name)) continue;
    const bool other = least_distance(section, known_section) >= kOtherSection;
    const int section_cost = other ? kOtherSection : edit_distance(section, known_section);
    const int cost = name_cost + std::min(section_cost, kOtherSection);
    if (best.empty() || cost < best_cost) {
      best = candidate;
      best_cost = cost;
    }
  }
  return best;
}

std::string did_you_mean_file(const std::string& missing_path) {
  const fs::path path(missing_path);
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  std::vector<std::string> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.is_regular_file(ignored)) {
      files.push_back((path.parent_path() / entry.path().filename()).string());
    }
  }
  std::sort(files.begin(), files.end());
  std::erase_if(files, [&](const std::string& file) {
    const std::string name = fs::path(file).filename().string(), wanted = path.filename().string();
    return !near(edit_distance(name, wanted), name, wanted);
  });
  return did_you_mean(missing_path, files);
}

}  // namespace difftape::system
