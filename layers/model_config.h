#pragma once
// What a model is made of, as plain values. Ranges and documentation are in train/config.

#include <string>

#include "core/real.h"

namespace difftape {

/// The word that leaves a field of the attention to its kind.
inline constexpr const char* kPreset = "preset";

/// What the fields mean is in layers/attention/fields.h, which words they take too.
struct AttentionConfig {
  std::string kind = "softmax";  ///< one of attention_kinds()
  std::string pairing = kPreset;
  std::string lambda = kPreset;
  std::string lambda_init = kPreset;
  double lambda_init_value = 0.8;
  std::string normaliser = kPreset;
  std::string subln = kPreset;
  std::string gate = kPreset;
  bool qk_norm = false;  ///< RMSNorm of every query and key head, before RoPE
  Index window = 0;      ///< keys that a query sees, itself included; 0: all
};

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
  double norm_eps = 1e-5;
  bool tie_embeddings = false;
  bool match_params = false;  ///< d_ff shrinks until the softmax total is met
  AttentionConfig attention{};
};

/// head_dim with its default resolved.
inline Index head_dim_of(const ModelConfig& config) {
  return config.head_dim != 0 ? config.head_dim : config.d_model / config.num_heads;
}
/// num_kv_heads with its default resolved.
inline Index kv_heads_of(const ModelConfig& config) {
  return config.num_kv_heads != 0 ? config.num_kv_heads : config.num_heads;
}

}  // namespace difftape
