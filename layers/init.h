#pragma once
// Initialization: the standard deviations of a preset, and overrides.

#include <optional>

#include "core/names.h"
#include "core/real.h"

namespace difftape {

/// Standard deviation of V1's lambda vectors (Ye et al. 2024) in every preset.
inline constexpr double kLambdaStd = 0.1;

/// gpt2: N(0, 0.02^2) with scaled residual projections, as in nanoGPT (Radford et al. 2019). torch:
/// the standard deviations of PyTorch's nn.Linear, 1 / sqrt(3 fan_in), and nn.Embedding, 1. lecun:
/// projections of variance 1 / fan_in, which keep the scale of their input (LeCun et al. 1998),
/// unit embeddings, scaled residual projections.
enum class InitPreset { gpt2, torch, lecun };
constexpr auto names_of(InitPreset) {
  return std::to_array<Named<InitPreset>>(
      {{"gpt2", InitPreset::gpt2}, {"torch", InitPreset::torch}, {"lecun", InitPreset::lecun}});
}

/// Standard deviation of a projection: fixed, or relative to the root of its inputs.
struct ProjectionStd {
  double factor;
  bool fan_in = false;  ///< factor / sqrt(inputs)

  double of(Index inputs) const;
  friend bool operator==(const ProjectionStd&, const ProjectionStd&) = default;
};

/// Unset values come from the preset.
struct InitConfig {
  InitPreset preset = InitPreset::lecun;
  std::optional<double> embedding_std{};
  std::optional<ProjectionStd> projection_std{};
  std::optional<bool> residual_scaling{};
};

/// The standard deviations of initial weights.
class InitRule {
 public:
  InitRule(const InitConfig& config, Index num_layers);

  double embedding() const { return embedding_; }
  /// Returns the value for a projection of `inputs` features.
  double projection(Index inputs) const { return projection_.of(inputs); }
  /// Returns the value for projections to the residual stream: with residual scaling divided by
  /// sqrt(2 num_layers).
  double to_residual(Index inputs) const { return projection_.of(inputs) / residual_divisor_; }

 private:
  double embedding_;
  ProjectionStd projection_;
  double residual_divisor_;
};

}  // namespace difftape
