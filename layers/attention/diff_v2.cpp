// Differential Transformer, V2 (Ye et al. 2026): twice the query heads over the baseline's keys and
// values; lambda is projected from the input for each token and head; no norm after.
#include "layers/attention/attention.h"

namespace difftape {

AttentionParts diff_v2_attention(const AttentionPlace& place) {
  const ModelConfig& config = place.config;
  return {HeadLayout::diff_v2(config.num_heads, place.kv_heads()), place.head_dim(),
          sigmoid_lambda(place.parameters, place.name, config.d_model, config.num_heads)};
}

}  // namespace difftape
