#pragma once
// A batch whose sequences have unequal numbers of scored targets.

#include "core/random.h"
#include "train/run/data/dataset.h"

namespace difftape::test {

/// Returns a batch of `rows` sequences, of which row b has b scored targets.
inline run::Batch uneven_batch(Index rows) {
  const RandomStream stream(1, "uneven");
  run::Batch batch{rows, 16, std::vector<std::int32_t>(rows * 17)};
  for (size_t i = 0; i < batch.tokens.size(); ++i)
    batch.tokens[i] = static_cast<std::int32_t>(stream.below(i, 256));
  for (Index i = 0; i < rows * 16; ++i) batch.scored.push_back(i % 16 < i / 16 ? 1 : 0);
  return batch;
}

}  // namespace difftape::test
