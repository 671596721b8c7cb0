#pragma once
// The fixed table of data.kind backcopy.

#include <cstdint>
#include <vector>

#include "train/run/data/dataset.h"

namespace difftape::run {

/// Transition probabilities of the symbols 0 to S - 1, the same for every run of these sizes.
struct Bigrams {
  Index symbols = 0;                   ///< S
  std::vector<double> probability;     ///< (S, S), rows sum to 1; those of triggers are not used
  std::vector<std::uint8_t> triggers;  ///< (S), 1 for a trigger

  const double* row(Index symbol) const { return probability.data() + symbol * symbols; }
  bool is_trigger(Index symbol) const { return triggers[static_cast<std::size_t>(symbol)] != 0; }
};

/// Row v is softmax_w(a_w + 1.5 z_vw), a and z standard normal from the stream "data/bigrams" of
/// seed 0. The triggers are the symbols that are most frequent in the long run of the table alone.
Bigrams make_bigrams(Index symbols, Index triggers);

/// Means over the T targets of a sequence of backcopy: of the entropy of the target given all
/// before it, in nats, and of the probability of the likeliest target.
BestAchievable best_of_backcopy(const Bigrams& bigrams, Index seq_len);

}  // namespace difftape::run
