#include "core/attention/mask.h"

#include <limits>

#include "core/parallel.h"

namespace difftape {

Tensor attention_mask(Index batch, Index seq, const Visibility& visible) {
  constexpr real kUnseen = -std::numeric_limits<real>::infinity();
  Tensor mask = Tensor::empty({batch, seq, seq});
  parallel_for(batch * seq, [&](Index row) {
    const Index t = row % seq;
    Index first =
        visible.sliding_window == 0 ? 0 : std::max<Index>(0, t + 1 - visible.sliding_window);
    if (visible.document_offsets) {
      first = std::max<Index>(first, (*visible.document_offsets)[static_cast<size_t>(row)]);
    }
    real* keys = mask.row(row);
    for (Index s = 0; s < seq; ++s) keys[s] = s >= first && s <= t ? 0 : kUnseen;
  });
  return mask;
}

}  // namespace difftape
