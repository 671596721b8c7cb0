#include "train/run/data/domains.h"

#include <algorithm>
#include <map>

#include "train/system/files.h"

namespace difftape::run {
namespace {

namespace fs = std::filesystem;

/// The possible names of a path, from the shortest on.
class Candidates {
 public:
  explicit Candidates(const fs::path& path) : path_(path), is_folder_(system::is_folder(path)) {}

  const fs::path& path() const { return path_; }
  std::string name() const {
    fs::path name = is_folder_ || with_extension_ ? path_.filename() : path_.stem();
    fs::path above = path_;
    for (int i = 0; i < parents_; ++i) {
      above = above.parent_path();
      name = above.filename() / name;
    }
    return name.string();
  }
  /// Goes to the next longer name, if there is one.
  bool lengthen() {
    if (parents_ + 1 < std::distance(path_.begin(), path_.end()) - 1) {
      ++parents_;
    } else if (!with_extension_) {
      with_extension_ = true;
      parents_ = 0;
    } else {
      return false;
    }
    return true;
  }

 private:
  fs::path path_;
  bool is_folder_;
  bool with_extension_ = false;
  int parents_ = 0;  ///< number of directories in the name
};

}  // namespace

std::string domain_file_name(std::string domain) {
  std::ranges::replace(domain, '/', '-');
  return domain;
}

std::vector<std::string> domain_names(std::span<const fs::path> paths) {
  std::vector<Candidates> all;
  for (const fs::path& path : paths) all.emplace_back(fs::canonical(path));
  for (bool changed = true; changed;) {
    changed = false;
    std::map<std::string, std::vector<Candidates*>> by_name;
    for (Candidates& each : all) by_name[domain_file_name(each.name())].push_back(&each);
    for (auto& [name, same] : by_name) {
      const auto differs = [&](const Candidates* each) { return each->path() != same[0]->path(); };
      if (std::ranges::none_of(same, differs)) continue;
      for (Candidates* each : same) changed = each->lengthen() || changed;
    }
  }
  std::vector<std::string> names;
  for (const Candidates& each : all) names.push_back(each.name());
  return names;
}

}  // namespace difftape::run
