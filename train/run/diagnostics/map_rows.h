#pragma once
// The attention maps that the fused kernels never store, row by row and in double, from what an
// observer sees of a layer.

#include <Eigen/Core>
#include <array>
#include <vector>

#include "layers/observer.h"

namespace difftape::run {

/// The part of one row of a map that the query sees: its scaled scores q k^T, without a sink, and
/// their softmax. With a sink the probabilities add up to less than 1.
struct MapRow {
  Eigen::ArrayXd logits, probabilities;
};

/// The first key that query t of a sequence sees; the last is t.
Index first_key(const AttentionView& view, Index sequence, Index t);

/// lambda of a token and output head. Only with two maps.
double lambda_at(const AttentionView& view, Index sequence, Index t, Index head);

/// The maps of one output head on one sequence. The view outlives it.
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
  std::vector<Map> maps_;
};

/// |p1 - lambda p2| divided by its sum: where the difference of two maps looks, whatever its sign.
/// A row of zeros stays one.
Eigen::ArrayXd normalised_difference(const Eigen::ArrayXd& p1, const Eigen::ArrayXd& p2,
                                     double lambda);

/// Entropy in nats of a row divided by its sum, so that what a sink took does not count; 0 for a
/// row of zeros.
double entropy(const Eigen::ArrayXd& probabilities);

}  // namespace difftape::run
