#pragma once
// The part of an attention layer that a program can write itself, a ContextRule (kinds.h): how
// queries, keys and values become the context. The layer does the rest: projections, RoPE, the
// norms, lambda, gate and W_O.

#include "autograd/ops.h"
#include "autograd/parameter.h"
#include "layers/attention/kinds.h"

namespace difftape {

struct ModelConfig;

/// The properties of an attention layer with which it declares its parameters.
struct AttentionArgs {
  Module module;  ///< of a layer, for example model.layers.0.self_attn
  const ModelConfig& config;
};

}  // namespace difftape
