// Differential Transformer, V2 (Ye et al. 2026): twice the query heads over the baseline's keys and
// values; lambda is projected from the input for each token and head; no norm after.
#include "layers/attention/fields.h"

namespace difftape {

AttentionFields diff_v2_preset() {
  AttentionFields fields;
  fields.wiring = Wiring::doubled;
  fields.lambda = LambdaKind::sigmoid;
  return fields;
}

}  // namespace difftape
