#pragma once
// Which cores each worker of a sweep has for itself.

#include <string>
#include <vector>

namespace difftape::study {

/// The cores this process may run on, as the system numbers them.
std::vector<int> usable_cores();

/// How the runs of a sweep share the machine.
struct Layout {
  std::vector<std::vector<int>> cores;  ///< of each worker
  std::vector<int> threads;             ///< of each worker

  int jobs() const { return static_cast<int>(cores.size()); }
  /// "2 processes x 1 thread".
  std::string str() const;
};

/// Splits `cores` among `jobs` workers as evenly as possible; with more workers than cores they
/// share them. None has more than `most_threads` threads. Needs jobs > 0 and a core.
Layout make_layout(int jobs, const std::vector<int>& cores, int most_threads);

}  // namespace difftape::study
