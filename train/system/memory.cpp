#include "train/system/memory.h"

#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string_view>

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

/// File names and keys of a version of control groups.
struct Names {
  const char *limit, *usage, *reclaimable;
};
constexpr Names kSecond{"memory.max", "memory.current", "inactive_file "};
constexpr Names kFirst{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "};

/// Returns the bytes that a group can still allocate, or nothing if it has no limit.
Bytes left_in(const fs::path& group, const Names& names) {
  const Bytes limit = number_after(group / names.limit, "");  // "max" is not a number
  const Bytes usage = number_after(group / names.usage, "");
  if (!limit || !usage) return std::nullopt;
  const std::uint64_t cached = number_after(group / "memory.stat", names.reclaimable).value_or(0);
  const std::uint64_t used = *usage - std::min(*usage, cached);
  return *limit - std::min(*limit, used);
}

void keep_least(Bytes& least, const Bytes& other) {
  if (other && (!least || *other < *least)) least = other;
}

/// Returns the minimum over the group and its ancestors up to the root of the hierarchy.
Bytes left_up_from(const fs::path& hierarchy, const fs::path& group, const Names& names) {
  Bytes least;
  for (fs::path each = group.relative_path();; each = each.parent_path()) {
    keep_least(least, left_in(hierarchy / each, names));
    if (each.empty()) return least;
  }
}

}  // namespace

std::optional<std::uint64_t> free_memory(const fs::path& root) {
  Bytes least = number_after(root / "proc/meminfo", "MemAvailable:");
  if (least) *least *= 1024;  // the file counts in KiB
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "0::/a/b" or "7:memory:/a/b"
    const std::size_t colon = line.find(':'), second = line.find(':', colon + 1);
    if (second == std::string::npos) continue;
    const std::string of = line.substr(colon + 1, second - colon - 1);
    const fs::path group = line.substr(second + 1), mounted = root / "sys/fs/cgroup";
    if (of.empty()) keep_least(least, left_up_from(mounted, group, kSecond));
    if (of == "memory") keep_least(least, left_up_from(mounted / "memory", group, kFirst));
  }
  return least;
}

void return_free_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace difftape::system
