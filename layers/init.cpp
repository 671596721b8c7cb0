#include "layers/init.h"

#include <cmath>

namespace difftape {

namespace {

/// The decisions of a preset.
struct Preset {
  double embedding_std;
  ProjectionStd projection_std;
  bool residual_scaling;
};

Preset preset_of(InitPreset preset) {
  switch (preset) {
    case InitPreset::torch:
      return {1, {1 / std::sqrt(3.0), true}, false};
    case InitPreset::lecun:
      return {1, {1, true}, true};
    case InitPreset::gpt2:
      break;
  }
  return {0.02, {0.02}, true};
}

}  // namespace

double ProjectionStd::of(Index inputs) const {
  return fan_in ? factor / std::sqrt(static_cast<double>(inputs)) : factor;
}

InitRule::InitRule(const InitConfig& config, Index num_layers) {
  const Preset preset = preset_of(config.preset);
  const bool scales = config.residual_scaling.value_or(preset.residual_scaling);
  embedding_ = config.embedding_std.value_or(preset.embedding_std);
  projection_ = config.projection_std.value_or(preset.projection_std);
  residual_divisor_ = scales ? std::sqrt(2.0 * static_cast<double>(num_layers)) : 1;
}

}  // namespace difftape
