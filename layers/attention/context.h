#pragma once
// The part of an attention layer that a program can write itself: how queries, keys and values
// become the context. The layer does the rest: projections, RoPE, the norms, lambda, gate and W_O.

#include <functional>

#include "autograd/ops.h"
#include "autograd/parameter.h"

namespace difftape {

struct ModelConfig;

/// What an attention layer needs to know to declare its parameters.
struct AttentionArgs {
  Module module;  ///< of a layer, for example model.layers.0.self_attn
  const ModelConfig& config;
};

/// What a rule reads.
struct AttentionOperands {
  Var q;       ///< (B, T, query_heads, D), after norm and RoPE
  Var k;       ///< (B, T, key_heads, D), likewise
  Var v;       ///< (B, T, value_heads, E)
  Var lambda;  ///< one scalar, or (B, T, output heads); undefined with one map
  Var sinks;   ///< (query_heads), one more logit in every softmax; undefined without
  const HeadMapping& mapping;  ///< which of the heads make an output head
  Visibility visible;          ///< attention_mask (core/attention/mask.h) makes a tensor of it
};

/// The context (B, T, output heads, E). It may depend on no token after its own, on none of another
/// document and on none before the window. Tensors that it makes of numbers are filled through
/// core/parallel.h, which a dry run skips.
using ContextRule = std::function<Var(const AttentionOperands& in)>;

/// The rule of one layer; declares the parameters that it reads, below its module.
/// Throws ConfigError for a model that it cannot serve.
using MakeContext = std::function<ContextRule(const AttentionArgs& layer)>;

}  // namespace difftape
