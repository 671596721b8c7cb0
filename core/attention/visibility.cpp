#include "core/attention/visibility.h"

#include <algorithm>
#include <limits>

#include "core/parallel.h"

namespace difftape {

Index Visibility::first_visible(Index position, Index token) const {
  Index first = sliding_window > 0 ? std::max<Index>(0, position + 1 - sliding_window) : 0;
  if (document_offsets) first = std::max<Index>(first, (*document_offsets)[token]);
  return first;
}

void append_run(KeyRuns& runs, const KeyRun& run) {
  if (run.count == 0) return;
  if (!runs.empty() && runs.back().end() == run.first && runs.back().maps == run.maps) {
    runs.back().count += run.count;
  } else {
    runs.push_back(run);
  }
}

Tensor attention_mask(Index batch, Index seq, const Visibility& visible) {
  constexpr real kUnseen = -std::numeric_limits<real>::infinity();
  Tensor mask = Tensor::empty({batch, seq, seq});
  parallel_for(batch * seq, [&](Index row) {
    const Index t = row % seq, first = visible.first_visible(t, row);
    real* keys = mask.row(row);
    for (Index s = 0; s < seq; ++s) keys[s] = s >= first && s <= t ? 0 : kUnseen;
  });
  return mask;
}

}  // namespace difftape
