#pragma once
// Free memory of the machine, and memory that the process can return.

#include <cstdint>
#include <filesystem>
#include <optional>

#include "train/system/number.h"

namespace difftape::system {

/// Returns the bytes that this process can allocate: the minimum of the kernel's MemAvailable and,
/// for each control group of the process, its limit minus its usage without inactive file pages.
/// Returns nothing if none is known. `root` contains /proc and /sys.
std::optional<std::uint64_t> free_memory(const std::filesystem::path& root = "/");

}  // namespace difftape::system
