#pragma once
// Rotary position embedding, interleaved: channels 2i and 2i+1 of a head are one plane, rotated by
// position * theta^(-2i/d) (Su et al. 2021, equation 34; the reference code of the Differential
// Transformer).

#include <mutex>

#include "core/tensor.h"

namespace difftape {

/// Cosines and sines of every position and plane, computed in double when they are first used: a
/// model that is only counted needs none.
class RopeTable {
 public:
  /// head_dim must be even (ShapeError).
  RopeTable(Index max_seq_len, Index head_dim, double theta);
  Index max_seq_len() const { return max_seq_len_; }
  Index head_dim() const { return head_dim_; }

  /// y (B, T, H, D) = x rotated forward (direction = 1) or back (-1), the first token being at
  /// position `first`; x and y may be the same. Throws ShapeError if a position reaches max_seq_len
  /// or D is not head_dim.
  void rotate(const Tensor& x, Tensor& y, real direction, Index first = 0) const;

 private:
  void fill() const;

  Index max_seq_len_, head_dim_;
  double theta_;
  mutable std::once_flag filled_;
  // (max_seq_len, head_dim), of plane i at 2i and 2i + 1, the sine at 2i with the opposite sign
  mutable Tensor cosine_, sine_;
};

}  // namespace difftape
