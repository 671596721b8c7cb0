// The baseline: causal grouped-query softmax attention (Vaswani et al. 2017; Ainslie et al. 2023).
#include "layers/attention/attention.h"

namespace difftape {

AttentionParts softmax_attention(const AttentionPlace& place) {
  return {HeadLayout::softmax(place.config.num_heads, place.kv_heads()), place.head_dim()};
}

}  // namespace difftape
