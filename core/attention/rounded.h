#pragma once
// Queries, keys and values rounded to bfloat16, in the layout that products of attention read.

#include <memory>

#include "core/tensor.h"

namespace difftape {

/// A tensor (B, T, heads, width) rounded to bfloat16, two bytes per element. The rows of a head are
/// neighbors, and each has an even number of elements: one more zero if the width is odd.
class RoundedHeads {
 public:
  RoundedHeads() = default;
  /// Rounds x (B, T, heads, width).
  explicit RoundedHeads(const Tensor& x);
  bool allocated() const { return bits_ != nullptr; }
  /// Returns the shape of the tensor.
  const Shape& shape() const { return shape_; }
  /// Returns the rounded tensor.
  Tensor values() const;
  /// Returns the elements of a row in memory.
  Index row_size() const { return round_up(shape_.last(), 2); }
  /// Returns the rows joined in pairs, (B, heads, ceil(T / 2), width): word (t / 2, i) has element
  /// i of tokens t and t + 1, or 0 after the last one.
  std::shared_ptr<std::uint32_t> pairs() const;
  /// Returns the bits of one row; the next token follows.
  const std::uint16_t* row(Index b, Index head, Index t) const {
    return bits_.get() + ((b * shape_[2] + head) * shape_[1] + t) * row_size();
  }

 private:
  Shape shape_{0};
  std::shared_ptr<std::uint16_t> bits_;
};

/// The operands of one attention call.
struct RoundedInputs {
  RoundedHeads q, k, v;
};

}  // namespace difftape
