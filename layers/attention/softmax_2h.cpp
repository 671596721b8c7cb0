// The baseline with twice the query heads, and so twice the width before the output projection:
// what V2 is compared with at the same query width (V2 article, "parameters and FLOPs").
#include "layers/attention/fields.h"

namespace difftape {

AttentionFields softmax_2h_preset() {
  AttentionFields fields;
  fields.query_multiple = 2;
  return fields;
}

}  // namespace difftape
