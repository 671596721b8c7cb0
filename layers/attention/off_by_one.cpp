// Softmax with 1 added to its denominator, so that a head can attend to nothing (Miller 2023).
#include "layers/attention/fields.h"

namespace difftape {

AttentionFields off_by_one_preset() {
  AttentionFields fields;
  fields.normaliser = Normaliser::off_by_one;
  return fields;
}

}  // namespace difftape
