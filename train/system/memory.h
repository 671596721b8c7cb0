#pragma once
// How much memory a process may still take, and what it need not keep.

#include <cstdint>
#include <filesystem>
#include <optional>

#include "train/system/number.h"

namespace difftape::system {

/// Bytes that this process can take before the machine, or a control group that it is in, has none
/// left: what the kernel calls available, and of each group its limit less what it uses and could
/// not give back. Nothing where neither is known. `root` is where /proc and /sys are.
std::optional<std::uint64_t> free_memory(const std::filesystem::path& root = "/");

/// Gives memory that was freed, and that the C library keeps for later, back to the system.
void return_free_memory();

}  // namespace difftape::system
