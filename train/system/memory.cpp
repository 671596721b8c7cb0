#include "train/system/memory.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string_view>

#include "train/system/control_groups.h"

namespace difftape::system {
namespace {

namespace fs = std::filesystem;
using Bytes = std::optional<std::uint64_t>;

/// Returns the number after a word in a file of lines "word number ...", or nothing.
Bytes number_after(const fs::path& file, std::string_view word) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    std::uint64_t value = 0;
    if (line.starts_with(word) && std::sscanf(line.c_str() + word.size(), "%lu", &value) == 1)
      return value;
  }
  return std::nullopt;
}

/// Returns the bytes that a group can still allocate, or nothing if it has no limit.
Bytes left_in(const ControlGroup& group) {
  const auto& [folder, second] = group;
  const Bytes limit =
      number_after(folder / (second ? "memory.max" : "memory.limit_in_bytes"), "");  // or "max"
  const Bytes usage =
      number_after(folder / (second ? "memory.current" : "memory.usage_in_bytes"), "");
  if (!limit || !usage) return std::nullopt;
  const char* cache = second ? "inactive_file " : "total_inactive_file ";
  const std::uint64_t cached = number_after(folder / "memory.stat", cache).value_or(0);
  const std::uint64_t used = *usage - std::min(*usage, cached);
  return *limit - std::min(*limit, used);
}

}  // namespace

std::optional<std::uint64_t> free_memory(const fs::path& root) {
  Bytes least = number_after(root / "proc/meminfo", "MemAvailable:");
  if (least) *least *= 1024;  // the file counts in KiB
  for (const ControlGroup& group : control_groups("memory", root))
    if (const Bytes left = left_in(group); left && (!least || *left < *least)) least = left;
  return least;
}

}  // namespace difftape::system
