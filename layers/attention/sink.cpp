// Softmax with exp of a learned logit, one a head, added to its denominator (gpt-oss, OpenAI 2025).
#include "layers/attention/fields.h"

namespace difftape {

AttentionFields sink_preset() {
  AttentionFields fields;
  fields.normaliser = Normaliser::sink;
  return fields;
}

}  // namespace difftape
