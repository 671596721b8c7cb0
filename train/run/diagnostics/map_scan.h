#pragma once
// One pass over all maps of a layer.

#include <array>
#include <vector>

#include "layers/observer.h"
#include "train/run/diagnostics/statistics.h"

namespace difftape::run {

/// Sinks are counted on inputs of so many tokens, those of a longer input being its first: a causal
/// map does not depend on what follows (Gu et al. 2024, "When attention sink emerges").
inline constexpr Index kSinkTokens = 64;

/// Sums over the queries of one head and sequence. The first tokens' are over the first kSinkTokens
/// queries: what A1, A2 and the map of the head (attention_measures.h) pay token 1.
struct MapSums {
  std::array<double, 3> first_token{};
  double entropy = 0;                 ///< of the map of the head
  std::array<double, 2> logit_max{};  ///< largest |logit| of A1, A2
};

struct MapScan {
  std::vector<MapSums> sums;  ///< (output heads, B)
  TopValues logits;           ///< of all |logits|
  Tensor first_maps;          ///< (output heads, S, T, T), see AttentionMeasures
};

/// The numbers that the median of the logits is taken of at most, about: the memory of a scan.
inline constexpr Index kMostMagnitudes = Index{1} << 24;

/// Of more than `most` logits the median is that of every n-th pair of query and key, in the order
/// of sequences, queries and keys, with the least odd n that leaves so few; the largest ones are
/// those of all. The same for every number of threads.
MapScan scan_maps(const AttentionView& view, Index most = kMostMagnitudes);

/// Unlike std::max, NaN if either is.
double larger(double a, double b);

}  // namespace difftape::run
