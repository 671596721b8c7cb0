#include "train/study/compare/run_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "core/error.h"
#include "train/system/files.h"
#include "train/system/text_table.h"

namespace difftape::study {

namespace {

namespace fs = std::filesystem;

/// The files that say how far runs are.
constexpr std::array kFiles = {"status.json", "metrics.jsonl", "index.csv"};

/// A line a file; what vanishes meanwhile is left out.
std::string state_of(const fs::path& dir) {
  std::set<std::string> lines;
  const auto add = [&](const fs::path& file) {
    std::error_code error;
    const auto size = fs::file_size(file, error);
    if (error) return;
    const auto time = fs::last_write_time(file, error).time_since_epoch().count();
    lines.insert(fmt::format("{} {} {}\n", file.string(), size, time));
  };
  std::error_code error;
  for (fs::recursive_directory_iterator entry(dir, error), end; !error && entry != end;
       entry.increment(error)) {
    if (std::ranges::find(kFiles, entry->path().filename()) != kFiles.end()) add(entry->path());
  }
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

/// Whether the index of a sweep has a run that is running or queued.
bool has_more(const fs::path& dir) {
  std::error_code ignored;
  if (!fs::exists(dir / "index.csv", ignored)) return false;
  const auto rows = system::read_csv(system::read_text(dir / "index.csv"));
  const auto column = std::ranges::find(rows.front(), "state") - rows.front().begin();
  return std::ranges::any_of(rows, [&](const std::vector<std::string>& row) {
    const auto at = static_cast<std::size_t>(column);
    return at < row.size() && (row[at] == to_string(run::RunState::queued) ||
                               row[at] == to_string(run::RunState::running));
  });
}

}  // namespace

RunWatch::RunWatch(std::vector<fs::path> dirs) : dirs_(std::move(dirs)) {
  for (const fs::path& dir : dirs_) {
    std::error_code ignored;
    if (fs::is_directory(dir, ignored)) continue;
    throw MissingInput(fmt::format(
        "report --watch: {} is no directory; need that of a run or a sweep", dir.string()));
  }
}

bool RunWatch::changed() {
  std::string now = " ";
  for (const fs::path& dir : dirs_) now += state_of(dir);
  const bool changed = now != seen_;
  seen_ = std::move(now);
  return changed;
}

std::optional<Collection> RunWatch::collect() {
  std::optional<Collection> collection;
  try {
    collection = collect_runs(dirs_);
  } catch (const MissingInput&) {  // no run has begun
  } catch (const DataError&) {     // or none has written its files
  }
  any_ = collection.has_value();
  over_ = any_ && std::ranges::none_of(dirs_, has_more) &&
          std::ranges::none_of(collection->runs, [](const RunRecord& run) {
            return run.status.state == run::RunState::running;
          });
  return collection;
}

}  // namespace difftape::study
