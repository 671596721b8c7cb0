#pragma once
// Rotary position embedding, interleaved: channels 2i and 2i+1 of each head are a plane, rotated by
// position times frequency. The frequency is theta^(-2i/d) (Su et al. 2021, equation 34; reference
// code of the Differential Transformer) or scaled for longer sequences.

#include <mutex>
#include <vector>

#include "core/names.h"
#include "core/tensor.h"

namespace difftape {

/// The scaling of frequencies for sequences longer than in training.
enum class RopeScalingKind {
  none,
  linear,  ///< divides all by the factor (position interpolation, Chen et al. 2023)
  ntk,     ///< raises theta: keeps the fastest, divides the slowest (bloc97 2023, "NTK-aware")
  /// Keeps planes that turn often within the original length, divides those that turn less than
  /// once, and scales logits with the factor (YaRN, Peng et al. 2023). A ramp over the planes
  /// connects the two, as in Hugging Face transformers.
  yarn
};
constexpr auto names_of(RopeScalingKind) {
  return std::to_array<Named<RopeScalingKind>>({{"none", RopeScalingKind::none},
                                                {"linear", RopeScalingKind::linear},
                                                {"ntk", RopeScalingKind::ntk},
                                                {"yarn", RopeScalingKind::yarn}});
}

struct RopeScaling {
  RopeScalingKind rope_type = RopeScalingKind::none;
  double factor = 1;           ///< how much longer sequences are, 1 or more
  Index original_seq_len = 0;  ///< tokens in training; for yarn only
  /// Multiplies queries and keys, and so logits by its square; 0: 0.1 ln(factor) + 1 with yarn,
  /// else 1.
  double attention_factor = 0;
};

struct RopeRule {
  double theta = 10000;
  RopeScaling scaling{};
};

/// Returns the raised theta of ntk.
double ntk_theta(double theta, double factor, Index head_dim);
/// Returns radians per token for each of the head_dim / 2 planes.
std::vector<double> rope_frequencies(const RopeRule& rule, Index head_dim);
/// Returns attention_factor with its default resolved.
double attention_factor_of(const RopeScaling& scaling);

/// Cosines and sines of every position and plane, times the attention factor, in double. Computed
/// at first use: a model that is only counted needs none.
class RopeTable {
 public:
  /// Throws ShapeError if head_dim is odd or 0.
  RopeTable(Index max_seq_len, Index head_dim, const RopeRule& rule = {});
  Index max_seq_len() const { return max_seq_len_; }
  Index head_dim() const { return head_dim_; }

  /// Computes y (B, T, H, D) = x rotated forward (direction = 1) or back (-1), times the attention
  /// factor in both directions. The first token is at position `first`; x and y may be the same.
  /// Throws ShapeError if a position reaches max_seq_len or D is not head_dim.
  void rotate(const Tensor& x, Tensor& y, real direction, Index first = 0) const;

 private:
  void fill() const;

  Index max_seq_len_, head_dim_;
  RopeRule rule_;
  mutable std::once_flag filled_;
  // One row per position: plane i at 2i and 2i + 1, its sine negated at 2i. The first elements
  // follow once more, for vectors that begin in one head and end in the next.
  mutable Index width_ = 0;
  mutable std::vector<real> cosine_, sine_;  // not of the pool, so a dry run does not count them
};

}  // namespace difftape
