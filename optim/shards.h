#pragma once
// Which of the processes that train a model together (core/processes.h) answers for which
// parameter: adds up its gradient, keeps what the optimizer keeps of it and updates it (ZeRO, stage
// 1: Rajbhandari et al. 2020, arXiv 1910.02054). One process answers for all.

#include <vector>

#include "autograd/parameter.h"
#include "core/processes.h"

namespace difftape {

class Shards {
 public:
  /// One process has all.
  Shards() = default;
  /// By sizes alone: the largest parameter first, each to the process that has least so far.
  Shards(const ParameterSet& parameters, Index processes);

  Index owner(size_t parameter) const { return owners_.empty() ? 0 : owners_[parameter]; }
  /// Whether this process answers for it.
  bool here(size_t parameter) const;

  /// Whether there is more than one process.
  bool several() const { return !owners_.empty(); }

  // Every process must call these at the same time.

  /// Gives all the values of the owners.
  void publish_values(ParameterSet& parameters) const;
  /// Of numbers that owners know, and that are 0 elsewhere, all get all.
  template <class T>
  void share(std::vector<T>& numbers) const {
    if (several()) processes::combine(numbers);
  }

 private:
  std::vector<Index> owners_;
};

}  // namespace difftape
