#pragma once
// The sum of a fixed number of tensors, its leaves, in an order that depends on their number alone:
// sums of aligned ranges of 2, 4, 8, ... leaves, as a binary counter carries; at the end the ranges
// that remain are added from the last to the first. So processes can sum any contiguous ranges of
// the leaves and send the sums of aligned ranges; the result has the bits of one process.

#include <span>
#include <vector>

#include "core/tensor.h"

namespace difftape {

/// The leaves [begin, end).
struct LeafSpan {
  Index begin, end;
};

/// Returns the leaves of one of several processes: contiguous in the order of the processes, and as
/// equal as possible, with the larger shares first.
LeafSpan leaves_of(Index leaves, Index processes, Index process);

/// Aligned leaves [begin, begin + size): `size` is a power of two that divides `begin`.
struct LeafRange {
  Index begin, size;
};

/// Returns the fewest aligned ranges that contain the leaves, in order.
std::vector<LeafRange> aligned_ranges(const LeafSpan& leaves);

/// Adds tensors of one size in the order of the tree.
class TreeSum {
 public:
  struct Part {
    LeafRange leaves;
    Tensor sum;
  };

  /// Adds the sum x of leaves that begin where the last ones ended. Afterwards x has unspecified
  /// contents, or no memory.
  void add(LeafRange leaves, Tensor& x);
  /// Returns the sums of the aligned ranges of the leaves so far, in order. Valid until the next
  /// change.
  std::span<Part> parts() { return parts_; }
  /// Moves the sum of all leaves, at least one, to x, and begins the next sum.
  void finish(Tensor& x);
  /// Moves the sum of the last range to x instead.
  void restart(Tensor& x);
  /// Returns the number of tensors it keeps for the next sum.
  Index kept() const { return std::ssize(spare_); }

 private:
  std::vector<Part> parts_;
  std::vector<Tensor> spare_;
};

}  // namespace difftape
