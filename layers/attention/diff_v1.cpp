// Differential Transformer, V1 (Ye et al. 2024): the baseline's H heads become H/2 pairs with
// values of twice the width; one lambda a layer; each head is normalised and scaled by 1 -
// lambda_init.
#include "layers/attention/attention.h"

namespace difftape {

namespace {
constexpr double kHeadNormEps = 1e-5;  // of the reference code, whatever the model's norm_eps
}

AttentionParts diff_v1_attention(const AttentionPlace& place) {
  const Index head_dim = place.head_dim();
  const double lambda_init = lambda_init_of_layer(place.layer);
  return {HeadLayout::diff_v1(place.config.num_heads, place.kv_heads()), 2 * head_dim,
          exponential_lambda(place.parameters, place.name, head_dim, lambda_init),
          HeadNorm{RmsNorm(place.parameters, place.name + ".subln", 2 * head_dim, kHeadNormEps),
                   1 - lambda_init}};
}

}  // namespace difftape
