#include "train/run/checkpoint/directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>

#include "core/error.h"
#include "train/system/files.h"

namespace difftape::run {

namespace {

namespace fs = std::filesystem;
constexpr std::string_view kStepPrefix = "step-", kStepSuffix = ".h5";

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// The name in a file `latest` or `best`; empty if there is none.
std::string name_in(const fs::path& path) {
  if (!is_file(path)) return "";
  std::string name = system::read_text(path);
  name.erase(name.find_last_not_of(" \r\n") + 1);
  return name;
}

bool names_another(const fs::path& where) {
  return where.filename() == kLatest || where.filename() == kBest;
}

}  // namespace

std::string step_file_name(Index step) {
  return fmt::format("{}{:08}{}", kStepPrefix, step, kStepSuffix);
}

std::optional<Index> step_of_file(const fs::path& file) {
  const std::string name = file.filename().string();
  if (!name.starts_with(kStepPrefix) || !name.ends_with(kStepSuffix)) return std::nullopt;
  Index step = 0;
  const char* end = name.data() + name.size() - kStepSuffix.size();
  const auto [stopped, error] = std::from_chars(name.data() + kStepPrefix.size(), end, step);
  const bool whole = error == std::errc() && stopped == end && step >= 0;
  return whole ? std::optional(step) : std::nullopt;
}

std::vector<std::pair<Index, fs::path>> checkpoints_in(const fs::path& directory) {
  std::vector<std::pair<Index, fs::path>> found;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    if (const auto step = step_of_file(entry->path())) found.emplace_back(*step, entry->path());
  }
  std::ranges::sort(found, std::greater());
  return found;
}

void name_best_checkpoint(const fs::path& directory, Index step) {
  system::replace_text(directory / kBest, step_file_name(step) + "\n");
}

void prune_checkpoints(const fs::path& directory, Index keep_last, Index keep_interval) {
  const auto found = checkpoints_in(directory);
  std::error_code error;
  const std::vector<std::string> named{name_in(directory / kLatest), name_in(directory / kBest)};
  for (std::size_t i = static_cast<std::size_t>(keep_last); i < found.size(); ++i) {
    const auto& [step, path] = found[i];
    const bool stays = std::ranges::find(named, path.filename().string()) != named.end() ||
                       (keep_interval > 0 && step % keep_interval == 0);
    if (!stays) fs::remove(path, error);
  }
}

bool is_checkpoint_file(const fs::path& path) { return path.extension() == kStepSuffix; }

bool names_checkpoint(const fs::path& where) {
  std::error_code ignored;
  return fs::is_directory(where, ignored) || is_checkpoint_file(where) || names_another(where);
}

bool has_checkpoint(const fs::path& run) {
  const fs::path directory = run / "checkpoints";
  return is_file(directory / kLatest) || !checkpoints_in(directory).empty();
}

fs::path find_checkpoint(const fs::path& where) {
  if (is_file(where) && !names_another(where)) return where;
  for (const fs::path& latest : {where, where / kLatest, where / "checkpoints" / kLatest}) {
    if (!is_file(latest)) continue;
    const std::string name = name_in(latest);
    fs::path named = latest.parent_path() / name;
    if (is_file(named)) return named;
    throw MissingInput(fmt::format("{} names '{}', which is not beside it", latest.string(), name));
  }
  for (const fs::path& directory : {where, where / "checkpoints"}) {
    if (const auto found = checkpoints_in(directory); !found.empty()) return found.front().second;
  }
  throw MissingInput(fmt::format(
      "no checkpoint at {}: need a .h5 file, or a run directory with checkpoints/latest",
      where.string()));
}

}  // namespace difftape::run
