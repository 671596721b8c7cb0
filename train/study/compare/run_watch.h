#pragma once
// Run directories that are looked at again and again while the runs are trained.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "train/study/compare/collection.h"

namespace difftape::study {

class RunWatch {
 public:
  /// Run directories, or those that hold runs or will. Throws MissingInput for what is no
  /// directory.
  explicit RunWatch(std::vector<std::filesystem::path> dirs);

  /// Whether a file of a run was written since the last call; true at first.
  bool changed();
  /// The runs; nothing as long as there is none that can be read.
  std::optional<Collection> collect();
  /// Whether there was a run at the last collect.
  bool any() const { return any_; }
  /// Whether at the last collect no run was running, and none of an index.csv was still to come.
  bool over() const { return over_; }

 private:
  std::vector<std::filesystem::path> dirs_;
  std::string seen_;  ///< paths, sizes and times of the files
  bool any_ = false, over_ = false;
};

}  // namespace difftape::study
