#include "train/run/diagnostics/map_rows.h"

#include <algorithm>
#include <cmath>

namespace difftape::run {

namespace {

/// Head `head` of sequence `b` of (B, T, heads, D) as (T, D).
Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> head_rows(const Tensor& x,
                                                                                 Index b,
                                                                                 Index head) {
  using Rows = Eigen::Matrix<real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Index seq = x.shape()[1], heads = x.shape()[2], dim = x.shape()[3];
  const real* first = x.data() + (b * seq * heads + head) * dim;
  return Eigen::Map<const Rows, 0, Eigen::OuterStride<>>(first, seq, dim,
                                                         Eigen::OuterStride<>(heads * dim))
      .cast<double>();
}

}  // namespace

Index first_key(const AttentionView& view, Index sequence, Index t) {
  const Visibility& visible = view.visible;
  Index first = visible.sliding_window > 0 ? std::max<Index>(0, t - visible.sliding_window + 1) : 0;
  if (visible.document_offsets) {
    const Index token = sequence * view.q.shape()[1] + t;
    first = std::max<Index>(first, (*visible.document_offsets)[static_cast<size_t>(token)]);
  }
  return first;
}

double lambda_at(const AttentionView& view, Index sequence, Index t, Index head) {
  const Tensor& lambda = view.lambda;
  if (lambda.size() == 1) return static_cast<double>(lambda.item());
  const Index token = sequence * lambda.shape()[1] + t;
  return static_cast<double>(lambda.data()[token * lambda.shape()[2] + head]);
}

MapRows::MapRows(const AttentionView& view, Index sequence, Index head)
    : view_(view), sequence_(sequence) {
  const OutputHead& route = view.mapping.outputs[static_cast<size_t>(head)];
  for (size_t map = 0; map < static_cast<size_t>(view.mapping.maps); ++map) {
    const bool has_sink = view.sinks.allocated();
    const Index query = route.query[map];
    maps_.push_back({head_rows(view.q, sequence, query) * view.scale,
                     head_rows(view.k, sequence, route.key[map]), has_sink,
                     has_sink ? static_cast<double>(view.sinks.data()[query]) : 0.0});
  }
}

MapRow MapRows::row(Index map, Index t) const {
  const Map& of = maps_[static_cast<size_t>(map)];
  const Index first = first_key(view_, sequence_, t), count = t - first + 1;
  MapRow row;
  row.logits = (of.keys.middleRows(first, count) * of.queries.row(t).transpose()).array();
  double max = row.logits.maxCoeff();
  if (of.has_sink) max = std::max(max, of.sink);
  row.probabilities = (row.logits - max).exp();
  const double sum = row.probabilities.sum() + (of.has_sink ? std::exp(of.sink - max) : 0.0);
  row.probabilities /= sum;
  return row;
}

Eigen::ArrayXd normalised_difference(const Eigen::ArrayXd& p1, const Eigen::ArrayXd& p2,
                                     double lambda) {
  Eigen::ArrayXd difference = (p1 - lambda * p2).abs();
  const double sum = difference.sum();
  if (sum != 0) difference /= sum;
  return difference;
}

double entropy(const Eigen::ArrayXd& probabilities) {
  const double sum = probabilities.sum();
  if (sum == 0) return 0;
  // -sum(q log q) of q = p / sum; a probability of 0 adds nothing, and NaN stays NaN.
  const Eigen::ArrayXd q = probabilities / sum;
  return -(q == 0).select(Eigen::ArrayXd::Zero(q.size()), q * q.log()).sum();
}

}  // namespace difftape::run
