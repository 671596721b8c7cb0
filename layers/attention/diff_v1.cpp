// Differential Transformer, V1 (Ye et al. 2024): the baseline's H heads become H/2 pairs with
// values of twice the width; one lambda a layer; each head is normalised and scaled by 1 -
// lambda_init.
#include "layers/attention/fields.h"

namespace difftape {

AttentionFields diff_v1_preset() {
  AttentionFields fields;
  fields.wiring = Wiring::pairs;
  fields.lambda = LambdaKind::exponential;
  fields.head_norm = true;
  return fields;
}

}  // namespace difftape
