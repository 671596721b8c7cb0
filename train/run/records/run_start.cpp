#include "train/run/records/run_start.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>

#include "core/error.h"
#include "train/system/lock.h"

namespace difftape::run {

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 7> kFirstFiles{
    "lock",         "config.yaml", "config.yaml.tmp", "env.json",
    "env.json.tmp", "stdout.log",  "status.json.tmp"};

bool belongs_to_a_start(const fs::directory_entry& entry) {
  std::error_code error;
  if (!entry.is_regular_file(error)) return false;
  const std::string name = entry.path().filename().string();
  if (name == "metrics.jsonl") return entry.file_size(error) == 0;
  return std::ranges::find(kFirstFiles, name) != kFirstFiles.end();
}

}  // namespace

bool only_begun(const fs::path& dir) {
  std::error_code error;
  if (!fs::is_directory(dir, error) || fs::is_empty(dir, error) || error) return false;
  fs::directory_iterator entry(dir, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (!belongs_to_a_start(*entry)) return false;
  }
  return !error;
}

void clear_begun(const fs::path& dir) {
  const system::DirectoryLock lock(dir);
  if (!only_begun(dir)) {
    throw OutputError(fmt::format(
        "{} holds more than the beginning of a run; nothing is overwritten: remove it, or choose "
        "another directory with --out",
        dir.string()));
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(dir)) {
    std::error_code error;
    fs::remove(entry.path(), error);
    if (error) {
      throw OutputError(
          fmt::format("cannot remove {}: {}", entry.path().string(), error.message()));
    }
  }
}

}  // namespace difftape::run
