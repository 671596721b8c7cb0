#pragma once
// The sizes of the generated tasks, which the sources in train/run/data/tasks define.

#include <vector>

#include "core/real.h"

namespace difftape::run {

/// Needle-in-a-haystack: facts "city -> number" in filler (V1 paper, section 3.4).
struct NeedlesConfig {
  Index cities = 64;
  std::vector<Index> facts{1, 2, 4, 6};    ///< N, one setting an item
  std::vector<Index> queries{1, 2, 2, 2};  ///< R of the same settings
  Index digits = 1;                        ///< tokens of a number
  Index filler = 16;                       ///< different tokens of filler

  /// Positions of the answer in validation: 0, 25, 50, 75 and 100 % of the context.
  static constexpr Index kDepths = 5;
  /// A city and its digits.
  Index fact_tokens() const { return 1 + digits; }
  /// A question and its answer: marker, city and digits.
  Index question_tokens() const { return 2 + digits; }
  Index vocab_size() const { return 1 + 10 + cities + filler; }
};

/// Multi-query associative recall (Arora et al. 2023, "Zoology").
struct MqarConfig {
  Index keys = 64;          ///< different keys
  Index values = 64;        ///< different values
  Index pairs = 4;          ///< D
  double gap_power = 0.01;  ///< a

  Index vocab_size() const { return keys + values; }
};

/// Noisy in-context recall (Poli et al. 2024, "MAD").
struct NoisyRecallConfig {
  Index keys = 64;     ///< different keys
  Index values = 64;   ///< different values
  Index filler = 16;   ///< different tokens of noise
  double noise = 0.2;  ///< its probability

  Index vocab_size() const { return keys + values + filler; }
};

/// Bigram-backcopy (Guo et al. 2024, "Active-Dormant Attention Heads").
struct BackcopyConfig {
  Index symbols = 64;  ///< different tokens after the first
  Index triggers = 3;  ///< how many of them repeat the token before

  Index vocab_size() const { return 1 + symbols; }
};

}  // namespace difftape::run
