#pragma once
// The assignment of parameters to data-parallel processes (core/distributed.h). The owner of a
// piece of a parameter reduces its gradient, keeps its optimizer state and updates it (ZeRO, stage
// 1: Rajbhandari et al. 2020, arXiv 1910.02054). Pieces begin at multiples of kElementGrain, the
// blocks over which norms are summed, so no sum depends on the number of processes.

#include <span>
#include <vector>

#include "autograd/parameter.h"
#include "core/distributed.h"
#include "optim/rules/rules.h"

namespace difftape {

/// Consecutive elements [begin, begin + count) of one parameter, which one process owns.
struct Piece {
  size_t parameter;  ///< position in the ParameterSet
  Index begin, count;
  Index owner = 0;
  Index offset = 0;  ///< of its state among the elements of the parameter that the owner owns
};

class Shards {
 public:
  /// One process owns all.
  Shards() = default;
  /// Cuts parameters into about kPiecesPerProcess pieces for each process, except parameters whose
  /// rule needs them whole. Assigns by size alone: the largest piece first, each to the process
  /// with the fewest elements so far. So each process has pieces of early and of late parameters,
  /// and receives gradients during the whole backward pass.
  Shards(const ParameterSet& parameters, const RuleSet& rules, Index processes);
  static constexpr Index kPiecesPerProcess = 16;

  /// Returns the pieces of a parameter, in order.
  std::span<const Piece> pieces(size_t parameter) const;
  /// Returns the piece that contains an element.
  const Piece& piece(size_t parameter, Index element) const;
  /// Returns true if this process owns an element.
  bool here(size_t parameter, Index element) const;
  /// Returns the number of elements of a parameter that a process owns.
  Index owned(size_t parameter, Index process) const;

  /// Returns true if there is more than one process.
  bool several() const { return processes_ > 1; }

  // Every process must call these at the same time.

  /// Sends the owners' values to all processes.
  void publish_values(ParameterSet& parameters) const;
  /// All-reduces numbers that may be nonzero on their owner only.
  template <class T>
  void share(std::vector<T>& numbers) const {
    if (several()) distributed::combine(numbers);
  }

 private:
  Index processes_ = 1;
  std::vector<Piece> pieces_;
  std::vector<size_t> first_;  // piece of each parameter, then the number of pieces
};

}  // namespace difftape
