#pragma once
// One run of a file that may be a sweep.

#include <string>
#include <vector>

#include "train/run/config/reader.h"

namespace difftape::study {

/// The configuration of a file that is a run or a sweep. Of a sweep the run of that name, or the
/// first of the arm `name`; an empty name will do for one arm. Throws what load_config and
/// load_sweep throw, and UsageError for a name that is not there, is missing, or is not needed.
run::ResolvedConfig config_of_arm(const std::string& path,
                                  const std::vector<std::string>& overrides,
                                  const std::string& name);

}  // namespace difftape::study
