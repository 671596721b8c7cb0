#pragma once
// The assignment of parameters to data-parallel processes (core/distributed.h). The owner of a
// parameter reduces its gradient, keeps its optimizer state and updates it (ZeRO, stage 1:
// Rajbhandari et al. 2020, arXiv 1910.02054).

#include <vector>

#include "autograd/parameter.h"
#include "core/distributed.h"

namespace difftape {

class Shards {
 public:
  /// One process owns all.
  Shards() = default;
  /// Assigns by size alone: the largest parameter first, each to the process with the fewest
  /// elements so far.
  Shards(const ParameterSet& parameters, Index processes);

  Index owner(size_t parameter) const { return owners_.empty() ? 0 : owners_[parameter]; }
  /// Returns true if this process owns the parameter.
  bool here(size_t parameter) const;

  /// Returns true if there is more than one process.
  bool several() const { return !owners_.empty(); }

  // Every process must call these at the same time.

  /// Sends the owners' values to all processes.
  void publish_values(ParameterSet& parameters) const;
  /// All-reduces numbers that may be nonzero on their owner only.
  template <class T>
  void share(std::vector<T>& numbers) const {
    if (several()) distributed::combine(numbers);
  }

 private:
  std::vector<Index> owners_;
};

}  // namespace difftape
