#include "train/system/control_groups.h"

#include <fstream>
#include <string>

namespace difftape::system {

namespace fs = std::filesystem;

std::vector<ControlGroup> control_groups(std::string_view controller, const fs::path& root) {
  std::vector<ControlGroup> found;
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "0::/a/b" or "4:cpu,cpuacct:/a/b"
    const std::size_t colon = line.find(':'), last = line.find(':', colon + 1);
    if (last == std::string::npos) continue;
    const std::string controllers = line.substr(colon + 1, last - colon - 1);
    const bool second = controllers.empty();
    if (!second &&
        ("," + controllers + ",").find("," + std::string(controller) + ",") == std::string::npos)
      continue;
    // "cpu" is often a link to "cpu,cpuacct".
    const fs::path hierarchy = root / "sys/fs/cgroup" / (second ? "" : std::string(controller));
    for (fs::path group = fs::path(line.substr(last + 1)).relative_path();;
         group = group.parent_path()) {
      found.push_back({hierarchy / group, second});
      if (group.empty()) break;
    }
  }
  return found;
}

}  // namespace difftape::system
