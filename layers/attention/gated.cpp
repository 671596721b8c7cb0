// Softmax attention whose result is multiplied by a sigmoid gate of the input (Qiu et al. 2025).
#include "layers/attention/fields.h"

namespace difftape {

AttentionFields gated_preset() {
  AttentionFields fields;
  fields.gate = Gate::elementwise;
  return fields;
}

}  // namespace difftape
