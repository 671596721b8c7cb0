#pragma once
// Rotary position embedding, interleaved: channels 2i and 2i+1 of a head are one plane, rotated by
// position times the frequency of the plane, theta^(-2i/d) (Su et al. 2021, equation 34; the
// reference code of the Differential Transformer) or one that is scaled for longer sequences.

#include <mutex>
#include <vector>

#include "core/names.h"
#include "core/tensor.h"

namespace difftape {

/// The change of frequencies for sequences longer than those of training.
enum class RopeScalingKind {
  none,
  linear,  ///< all are divided by the factor (position interpolation, Chen et al. 2023)
  ntk,     ///< a larger theta: the fastest stays, the slowest is divided (bloc97 2023, "NTK-aware")
  /// Planes that turn often within the original length keep their frequency, those that turn less
  /// than once are divided, and logits grow with the factor (YaRN, Peng et al. 2023). Between the
  /// two a ramp over the planes, as in Hugging Face transformers.
  yarn
};
template <>
inline constexpr auto kNames<RopeScalingKind> =
    std::to_array<Named<RopeScalingKind>>({{"none", RopeScalingKind::none},
                                           {"linear", RopeScalingKind::linear},
                                           {"ntk", RopeScalingKind::ntk},
                                           {"yarn", RopeScalingKind::yarn}});

struct RopeScaling {
  RopeScalingKind rope_type = RopeScalingKind::none;
  double factor = 1;           ///< how much longer sequences are, 1 or more
  Index original_seq_len = 0;  ///< tokens in training; read by yarn alone
  /// Queries and keys are multiplied by it, and so logits by its square; 0: 0.1 ln(factor) + 1 with
  /// yarn, 1 otherwise.
  double attention_factor = 0;
};

struct RopeRule {
  double theta = 10000;
  RopeScaling scaling{};
};

/// The larger theta of ntk.
double ntk_theta(double theta, double factor, Index head_dim);
/// Radians a token, of each of the head_dim / 2 planes.
std::vector<double> rope_frequencies(const RopeRule& rule, Index head_dim);
/// attention_factor with its default resolved.
double attention_factor_of(const RopeScaling& scaling);

/// Cosines and sines of every position and plane, times the attention factor, computed in double
/// when they are first used: a model that is only counted needs none.
class RopeTable {
 public:
  /// head_dim must be even (ShapeError).
  RopeTable(Index max_seq_len, Index head_dim, const RopeRule& rule = {});
  Index max_seq_len() const { return max_seq_len_; }
  Index head_dim() const { return head_dim_; }

  /// y (B, T, H, D) = x rotated forward (direction = 1) or back (-1), the first token being at
  /// position `first`, and times the attention factor both ways; x and y may be the same. Throws
  /// ShapeError if a position reaches max_seq_len or D is not head_dim.
  void rotate(const Tensor& x, Tensor& y, real direction, Index first = 0) const;

 private:
  void fill() const;

  Index max_seq_len_, head_dim_;
  RopeRule rule_;
  mutable std::once_flag filled_;
  // (max_seq_len, head_dim), of plane i at 2i and 2i + 1, the sine at 2i with the opposite sign
  mutable Tensor cosine_, sine_;
};

}  // namespace difftape
