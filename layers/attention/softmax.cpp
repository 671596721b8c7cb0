// The baseline: causal grouped-query softmax attention (Vaswani et al. 2017; Ainslie et al. 2023).
#include "layers/attention/fields.h"

namespace difftape {

AttentionFields softmax_preset() { return {}; }

}  // namespace difftape
