#pragma once
// The control groups of this process, which limit its memory and CPU time.

#include <filesystem>
#include <string_view>
#include <vector>

namespace difftape::system {

struct ControlGroup {
  std::filesystem::path folder;
  bool second;  ///< of version 2 of control groups, whose files have other names
};

/// Returns the groups of this process that can limit `controller` ("memory", "cpu"), each followed
/// by its ancestors. `root` contains /proc and /sys.
std::vector<ControlGroup> control_groups(std::string_view controller,
                                         const std::filesystem::path& root);

}  // namespace difftape::system
