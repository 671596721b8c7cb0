#pragma once
// What a model is made of, as plain values. Ranges, documentation and which combinations are
// invalid are in train/run/config.

#include <algorithm>
#include <cmath>

#include "core/names.h"
#include "core/rope.h"
#include "layers/attention/kinds.h"
#include "layers/init.h"

namespace difftape {

/// Which activations a training step keeps for backward, and which it computes again (Chen et al.
/// 2016).
enum class ActivationCheckpointing {
  none,   ///< all are kept
  blocks  ///< of each transformer block only the input; backward runs the block once more
};
template <>
inline constexpr auto kNames<ActivationCheckpointing> =
    std::to_array<Named<ActivationCheckpointing>>({{"none", ActivationCheckpointing::none},
                                                   {"blocks", ActivationCheckpointing::blocks}});

struct ModelConfig {
  Index d_model = 128;
  Index num_layers = 4;
  Index num_heads = 4;     ///< head count H of the softmax baseline, whatever the kind
  Index num_kv_heads = 0;  ///< 0: num_heads
  Index head_dim = 0;      ///< 0: d_model / num_heads
  Index d_ff = 344;
  Index max_seq_len = 256;
  Index vocab_size = 256;
  bool rope = true;
  double rope_theta = 10000;
  RopeScaling rope_scaling{};
  double norm_eps = 1e-5;
  bool tie_word_embeddings = false;
  bool match_params = false;    ///< d_ff shrinks until the number of parameters is that of softmax
  bool embedding_norm = false;  ///< RMSNorm of the embeddings before the first block
  double z_loss_weight = 0;     ///< its weight in the loss that is trained on (autograd/ops.h)
  double final_logit_softcap = 0;  ///< c: output logits are c tanh(logits / c); 0: as they are
  AttentionConfig attention{};
  InitConfig init{};
};

/// How the weights of a model begin.
inline InitRule init_rule(const ModelConfig& config) { return {config.init, config.num_layers}; }
/// head_dim with its default resolved.
inline Index head_dim_of(const ModelConfig& config) {
  return config.head_dim != 0 ? config.head_dim : config.d_model / config.num_heads;
}
/// How queries and keys are turned; an original_seq_len of 0 is max_seq_len / factor.
inline RopeRule rope_rule(const ModelConfig& config) {
  RopeRule rule{config.rope_theta, config.rope_scaling};
  if (rule.scaling.original_seq_len == 0) {
    rule.scaling.original_seq_len = std::max<Index>(
        std::llround(static_cast<double>(config.max_seq_len) / rule.scaling.factor), 1);
  }
  return rule;
}
/// num_kv_heads with its default resolved.
inline Index kv_heads_of(const ModelConfig& config) {
  return config.num_kv_heads != 0 ? config.num_kv_heads : config.num_heads;
}

}  // namespace difftape
