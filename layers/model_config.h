#pragma once
// The architecture of a model as plain values. layers/model_rules.h has the rules that it must
// keep; documentation and settings without effect are in train/run/config.

#include <algorithm>
#include <cmath>

#include "core/names.h"
#include "core/rope.h"
#include "core/routing.h"
#include "layers/attention/kinds.h"
#include "layers/init.h"

namespace difftape {

/// Activations kept for backward; others are recomputed (Chen et al. 2016).
enum class ActivationCheckpointing {
  none,   ///< keeps all
  blocks  ///< keeps the input of each transformer block and runs the block again
};
constexpr auto names_of(ActivationCheckpointing) {
  return std::to_array<Named<ActivationCheckpointing>>(
      {{"none", ActivationCheckpointing::none}, {"blocks", ActivationCheckpointing::blocks}});
}

/// A mixture of experts in place of the MLP of every block.
struct MoeConfig {
  Index num_experts = 0;            ///< E; 0: the dense MLP
  Index num_experts_per_tok = 2;    ///< k
  Index num_shared_experts = 0;     ///< experts of every token, computed as one MLP
  Index moe_intermediate_size = 0;  ///< hidden width F of one expert
  RouterScore scoring_func = RouterScore::softmax;
  bool norm_topk_prob = true;  ///< weights of a token sum to 1
  double router_aux_loss_coef = 0;
  double router_z_loss_coef = 0;
  double router_bias_update_rate = 0;  ///< of layers/load_balancer.h; 0: no bias
};

struct ModelConfig {
  Index d_model = 128;
  Index num_layers = 4;
  Index num_heads = 4;     ///< head count H of the softmax baseline, for every kind
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
  bool match_params = false;    ///< match the parameter count of softmax by d_ff
  bool embedding_norm = false;  ///< RMSNorm of the embeddings before the first block
  /// Layers of YOCO's self-decoder; the others share keys and values (attention/key_values.h). 0:
  /// every layer makes its own.
  Index yoco_self_layers = 0;
  double z_loss_weight = 0;        ///< weight of the z-loss (autograd/ops.h)
  double final_logit_softcap = 0;  ///< c: output logits become c tanh(logits / c); 0: no cap
  MoeConfig moe{};
  AttentionConfig attention{};
  InitConfig init{};
};

inline InitRule init_rule(const ModelConfig& config) { return {config.init, config.num_layers}; }
/// Returns head_dim with its default resolved.
inline Index head_dim_of(const ModelConfig& config) {
  return config.head_dim != 0 ? config.head_dim : config.d_model / config.num_heads;
}
/// Returns the rotation of queries and keys; original_seq_len 0 becomes max_seq_len / factor.
inline RopeRule rope_rule(const ModelConfig& config) {
  RopeRule rule{config.rope_theta, config.rope_scaling};
  if (rule.scaling.original_seq_len == 0) {
    rule.scaling.original_seq_len = std::max<Index>(
        std::llround(static_cast<double>(config.max_seq_len) / rule.scaling.factor), 1);
  }
  return rule;
}
/// Returns the hidden width of an MLP or expert that `match_params` sets.
inline Index& mlp_width(ModelConfig& config) {
  return config.moe.num_experts > 0 ? config.moe.moe_intermediate_size : config.d_ff;
}
/// Returns true for the layers of YOCO's cross-decoder.
inline bool shares_key_values(const ModelConfig& config, Index layer) {
  return config.yoco_self_layers > 0 && layer >= config.yoco_self_layers;
}
/// Returns the number of projections to keys and values, each of which has a cache.
inline Index kv_caches_of(const ModelConfig& config) {
  return config.yoco_self_layers > 0 ? config.yoco_self_layers + 1 : config.num_layers;
}
/// Returns the number of keys that a query of the layer sees, itself included; 0: all. A
/// cross-decoder has no window.
inline Index window_of(const ModelConfig& config, Index layer) {
  return shares_key_values(config, layer) ? 0 : config.attention.sliding_window;
}
/// Returns num_kv_heads with its default resolved.
inline Index kv_heads_of(const ModelConfig& config) {
  return config.num_kv_heads != 0 ? config.num_kv_heads : config.num_heads;
}

}  // namespace difftape
