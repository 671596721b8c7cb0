#pragma once
// Attention maps in double, computed from the AttentionView of a layer because the fused kernels
// never store them: row by row, and in one pass over all maps of a layer.

#include <Eigen/Core>
#include <array>
#include <span>
#include <vector>

#include "core/attention/selection.h"
#include "core/tensor.h"
#include "layers/observer.h"

namespace difftape::run {

/// Mean, population standard deviation, minimum and maximum; all NaN without values.
struct Spread {
  double mean, std, min, max;
};
Spread spread_of(std::span<const double> values);

/// Returns the root mean square of all elements.
double rms(const Tensor& x);

/// Returns mean(s^4) / mean(s^2)^2, where s_j is the root mean square of feature j (last axis of x)
/// over all rows. It is 1 if all features have equal size, and their number if all but one are 0.
/// Source: He et al. 2024, arXiv 2405.19279.
double kurtosis(const Tensor& x);

/// The visible part of one row of a map: the scaled scores q k^T, before a soft cap and without a
/// sink, and their softmax. With a sink the probabilities sum to less than 1.
struct MapRow {
  Eigen::ArrayXd logits, probabilities;
};

/// Returns the first key that query t of a sequence sees; the last is t.
Index first_key(const AttentionView& view, Index sequence, Index t);

/// Returns lambda of a token and output head; needs two maps.
double lambda_at(const AttentionView& view, Index sequence, Index t, Index head);

/// The maps of one output head on one sequence. Keys that block-sparse attention does not read have
/// logit and probability 0. The view must outlive the object.
class MapRows {
 public:
  MapRows(const AttentionView& view, Index sequence, Index head);

  /// Returns row t of map 0 or 1.
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

/// Returns |p1 - lambda p2| divided by its sum, the absolute weight of each key. A row of zeros
/// stays zero.
Eigen::ArrayXd normalized_difference(const Eigen::ArrayXd& p1, const Eigen::ArrayXd& p2,
                                     double lambda);

/// Returns the entropy in nats of a row divided by its sum, which excludes the weight of a sink; 0
/// for a row of zeros.
double entropy(const Eigen::ArrayXd& probabilities);

/// Number of first tokens of a sequence on which sinks are counted; causal maps of these do not
/// depend on later tokens (Gu et al. 2024, "When attention sink emerges").
inline constexpr Index kSinkTokens = 64;

/// Sums over the queries of one head and sequence. `first_token` sums the weight of token 1 in A1,
/// A2 and the map of the head (attention_measures.h) over the first kSinkTokens queries.
struct MapSums {
  std::array<double, 3> first_token{};
  double entropy = 0;                 ///< entropy of the map of the head, nats
  double pairs = 0, sparse = 0;       ///< visible query-key pairs; those below kSparseWeight
  std::array<double, 2> logit_max{};  ///< largest |logit| of A1, A2
};

/// Weights of a map below this count as sparse.
inline constexpr double kSparseWeight = 1e-3;

struct MapScan {
  std::vector<MapSums> sums;  ///< (output heads, B)
  Tensor first_maps;          ///< (output heads, S, T, T), see AttentionMeasures
};

/// Scans all maps of a layer. The result does not depend on the number of threads.
MapScan scan_maps(const AttentionView& view);

/// Returns the larger number, or NaN if either is NaN.
double larger(double a, double b);

}  // namespace difftape::run
