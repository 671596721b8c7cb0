#pragma once
// The interface for a ContextRule (kinds.h), with which a program replaces the fused op. The layer
// keeps projections, RoPE, norms, lambda, gate and W_O.

#include "autograd/ops.h"
#include "autograd/parameter.h"
#include "layers/attention/kinds.h"

namespace difftape {

struct ModelConfig;

/// The context in which an attention layer declares its parameters.
struct AttentionArgs {
  Module module;  ///< for example model.layers.0.self_attn
  const ModelConfig& config;
};

}  // namespace difftape
