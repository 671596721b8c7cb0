#pragma once
// The attention maps that the fused kernels never store, in double, from what an observer sees of a
// layer: row by row, and in one pass over all maps of a layer.

#include <Eigen/Core>
#include <array>
#include <span>
#include <vector>

#include "core/attention/selection.h"
#include "core/tensor.h"
#include "layers/observer.h"

namespace difftape::run {

/// Mean, population standard deviation, smallest and largest. Of nothing: all NaN.
struct Spread {
  double mean, std, min, max;
};
Spread spread_of(std::span<const double> values);

/// The largest of many magnitudes by rank, and their median (Ye et al. 2024, table 5); NaN for a
/// rank that there are too few for. The median of an even number is the mean of the middle two.
struct TopValues {
  double top1, top2, top3, top10, top100, median;
};
/// Reorders the magnitudes, which are not negative.
TopValues top_values(std::span<real> magnitudes);
/// [top1, top2, top3, top10, top100, median], as metrics list them.
std::vector<double> list_of(const TopValues& values);

/// Root mean square of all elements.
double rms(const Tensor& x);

/// How unequal features (the last axis of x) are in size: with s_j the root mean square of feature
/// j over all rows, mean(s^4) / mean(s^2)^2. 1: all alike; at most their number: all but one 0 (He
/// et al. 2024, "Understanding and minimising outlier features").
double kurtosis(const Tensor& x);

/// The part of one row of a map that the query sees: its scaled scores q k^T, without a sink and
/// before a soft cap, and their softmax. With a sink the probabilities add up to less than 1.
struct MapRow {
  Eigen::ArrayXd logits, probabilities;
};

/// The first key that query t of a sequence sees; the last is t.
Index first_key(const AttentionView& view, Index sequence, Index t);

/// lambda of a token and output head. Only with two maps.
double lambda_at(const AttentionView& view, Index sequence, Index t, Index head);

/// The maps of one output head on one sequence. A key that block-sparse attention does not read has
/// logit and probability 0. The view outlives it.
class MapRows {
 public:
  MapRows(const AttentionView& view, Index sequence, Index head);

  /// Row t of map 0 or 1.
  MapRow row(Index map, Index t) const;

 private:
  using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  struct Map {
    Rows queries, keys;  // (T, D)
    bool has_sink;
    double sink;
  };

  const AttentionView& view_;
  Index sequence_;
  KeySelection selection_;
  std::vector<Map> maps_;
};

/// |p1 - lambda p2| divided by its sum: how the difference of two maps weighs keys, whatever its
/// sign. A row of zeros stays one.
Eigen::ArrayXd normalised_difference(const Eigen::ArrayXd& p1, const Eigen::ArrayXd& p2,
                                     double lambda);

/// Entropy in nats of a row divided by its sum, so that what a sink took does not count; 0 for a
/// row of zeros.
double entropy(const Eigen::ArrayXd& probabilities);

/// Sinks are counted on inputs of so many tokens, those of a longer input being its first: a causal
/// map does not depend on what follows (Gu et al. 2024, "When attention sink emerges").
inline constexpr Index kSinkTokens = 64;

/// Sums over the queries of one head and sequence. The first tokens' are over the first kSinkTokens
/// queries: what A1, A2 and the map of the head (attention_measures.h) give token 1.
struct MapSums {
  std::array<double, 3> first_token{};
  double entropy = 0;                 ///< of the map of the head
  double pairs = 0, sparse = 0;       ///< of query and key; those below kSparseWeight in that map
  std::array<double, 2> logit_max{};  ///< largest |logit| of A1, A2
};

/// A weight of a map below this counts as none.
inline constexpr double kSparseWeight = 1e-3;

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
