#pragma once
// Rotary position embedding, interleaved: channels 2i and 2i+1 of a head are one plane, rotated by
// position * theta^(-2i/d) (Su et al. 2021, equation 34; the reference code of the Differential
// Transformer).

#include "core/tensor.h"

namespace difftape {

/// Cosines and sines of every position and plane, computed once in double.
class RopeTable {
 public:
  /// head_dim must be even (ShapeError).
  RopeTable(Index max_seq_len, Index head_dim, double theta);
  Index max_seq_len() const { return cosine_.shape()[0]; }
  Index head_dim() const { return cosine_.shape()[1] * 2; }

  /// y (B, T, H, D) = x rotated forward (direction = 1) or back (-1); x and y may be the same.
  /// Throws ShapeError if T exceeds max_seq_len or D is not head_dim.
  void rotate(const Tensor& x, Tensor& y, real direction) const;

 private:
  Tensor cosine_, sine_;  // (max_seq_len, head_dim / 2)
};

}  // namespace difftape
