#include "train/run/diagnostics/map_scan.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>

#include "core/parallel.h"
#include "core/real.h"

namespace difftape::run {
Spread spread_of(std::span<const double> values) {
  if (values.empty()) return {kNaN, kNaN, kNaN, kNaN};
  const auto n = static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += value;
  if (std::isnan(sum) && std::ranges::any_of(values, [](double x) { return std::isnan(x); }))
    return {kNaN, kNaN, kNaN, kNaN};
  const double mean = sum / n;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const auto [min, max] = std::ranges::minmax(values);
  return {mean, std::sqrt(squares / n), min, max};
}

double rms(const Tensor& x) {
  double squares = 0;
  for (const real value : x.values()) squares += static_cast<double>(value) * value;
  return std::sqrt(squares / static_cast<double>(x.size()));
}

double kurtosis(const Tensor& x) {
  const Index rows = x.shape().rows(), features = x.shape().last();
  std::vector<double> squares(features);  // per feature, summed over rows
  for (Index i = 0; i < rows; ++i) {
    const real* row = x.row(i);
    for (size_t j = 0; j < squares.size(); ++j)
      squares[j] += static_cast<double>(row[j]) * static_cast<double>(row[j]);
  }
  double second = 0, fourth = 0;
  for (double square : squares) {
    square /= static_cast<double>(rows);
    second += square;
    fourth += square * square;
  }
  return fourth * static_cast<double>(features) / (second * second);
}

namespace {

/// Returns head `head` of sequence `b` of x, (B, T, heads, D), as (T, D).
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

using Eigen::ArrayXd;

/// Scans the maps of one head on one sequence, query by query.
class HeadScan {
 public:
  /// Writes the first maps to `first_maps`, (S, T, T), unless null.
  HeadScan(const AttentionView& view, Index b, Index head, real* first_maps)
      : view_(view), b_(b), head_(head), rows_(view, b, head), first_maps_(first_maps) {}

  MapSums run() {
    for (Index t = 0; t < view_.q.shape()[1]; ++t) query(t);
    return sums_;
  }

 private:
  void query(Index t) {
    std::array<ArrayXd, 2> maps;
    const auto count = static_cast<size_t>(view_.mapping.maps);
    for (size_t map = 0; map < count; ++map) {
      MapRow row = rows_.row(static_cast<Index>(map), t);
      sums_.logit_max[map] =
          larger(sums_.logit_max[map], row.logits.abs().maxCoeff<Eigen::PropagateNaN>());
      look_at(map, t, row.probabilities);
      maps[map] = std::move(row.probabilities);
    }
    if (count == 1) {
      add_row(maps[0]);
      return;
    }
    const ArrayXd both = normalized_difference(maps[0], maps[1], lambda_at(view_, b_, t, head_));
    look_at(2, t, both);
    add_row(both);
  }

  /// Adds a row of the map of the head to the sums.
  void add_row(const ArrayXd& row) {
    sums_.entropy += entropy(row);
    sums_.pairs += static_cast<double>(row.size());
    sums_.sparse += row.isNaN().any() ? kNaN : static_cast<double>((row < kSparseWeight).count());
  }

  /// Adds row t of A1, A2 or the map of the head (`which` 0, 1, 2) to the sink sums and first maps.
  void look_at(size_t which, Index t, const ArrayXd& row) {
    const Index tokens = std::min(view_.q.shape()[1], kSinkTokens);
    if (t >= tokens) return;
    const Index first = t + 1 - row.size();
    if (first == 0) sums_.first_token[which] += row[0];
    if (!first_maps_) return;
    const Index at = (static_cast<Index>(which) * tokens + t) * tokens + first;
    std::transform(row.begin(), row.end(), first_maps_ + at,
                   [](double x) { return static_cast<real>(x); });
  }

  const AttentionView& view_;
  Index b_, head_;
  MapRows rows_;
  real* first_maps_;
  MapSums sums_;
};

}  // namespace

Index first_key(const AttentionView& view, Index sequence, Index t) {
  return view.visible.first_visible(t, sequence * view.q.shape()[1] + t);
}

double lambda_at(const AttentionView& view, Index sequence, Index t, Index head) {
  const Tensor& lambda = view.lambda;
  if (lambda.size() == 1) return static_cast<double>(lambda.item());
  const Index token = sequence * lambda.shape()[1] + t;
  return static_cast<double>(lambda.data()[token * lambda.shape()[2] + head]);
}

namespace {

KeySelection selection_of(const AttentionView& view, Index sequence, Index head) {
  if (view.blocks.block_size == 0) return {};
  return {view, sequence, view.mapping.groups()[groups_of_heads(view.mapping)[head]]};
}

void hide_unread(const KeySelection& selection, Index map, Index t, Index first, ArrayXd& logits,
                 ArrayXd& scores) {
  for (Index i = 0; i < logits.size(); ++i) {
    if (selection.reads(map, t, first + i)) continue;
    logits[i] = 0;
    scores[i] = -std::numeric_limits<double>::infinity();
  }
}

}  // namespace

MapRows::MapRows(const AttentionView& view, Index sequence, Index head)
    : view_(view), sequence_(sequence), selection_(selection_of(view, sequence, head)) {
  const OutputHead& route = view.mapping.outputs[head];
  for (size_t map = 0; map < static_cast<size_t>(view.mapping.maps); ++map) {
    const bool has_sink = view.sinks.allocated();
    const Index query = route.query[map];
    maps_.push_back({head_rows(view.q, sequence, query) * view.scale,
                     head_rows(view.k, sequence, route.key[map]), has_sink,
                     has_sink ? static_cast<double>(view.sinks.data()[query]) : 0.0});
  }
}

MapRow MapRows::row(Index map, Index t) const {
  const Map& of = maps_[map];
  const Index first = first_key(view_, sequence_, t), count = t - first + 1;
  MapRow row;
  row.logits = (of.keys.middleRows(first, count) * of.queries.row(t).transpose()).array();
  const double cap = view_.logit_softcap;
  ArrayXd scores = cap > 0 ? ArrayXd((row.logits / cap).tanh() * cap) : row.logits;
  hide_unread(selection_, map, t, first, row.logits, scores);
  double max = scores.maxCoeff();
  if (of.has_sink) max = std::max(max, of.sink);
  row.probabilities = (scores - max).exp();
  const double sum = row.probabilities.sum() + (of.has_sink ? std::exp(of.sink - max) : 0.0);
  row.probabilities /= sum;
  return row;
}

Eigen::ArrayXd normalized_difference(const Eigen::ArrayXd& p1, const Eigen::ArrayXd& p2,
                                     double lambda) {
  Eigen::ArrayXd difference = (p1 - lambda * p2).abs();
  const double sum = difference.sum();
  if (sum != 0) difference /= sum;
  return difference;
}

double entropy(const Eigen::ArrayXd& probabilities) {
  const double sum = probabilities.sum();
  if (sum == 0) return 0;
  // -sum(q log q) of q = p / sum. A probability of 0 contributes 0, and NaN stays NaN.
  const Eigen::ArrayXd q = probabilities / sum;
  return -(q == 0).select(Eigen::ArrayXd::Zero(q.size()), q * q.log()).sum();
}

double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }

MapScan scan_maps(const AttentionView& view) {
  const auto heads = std::ssize(view.mapping.outputs);
  const Index batch = view.q.shape()[0], tokens = std::min(view.q.shape()[1], kSinkTokens);
  MapScan scan;
  scan.first_maps = Tensor::zeros({heads, view.mapping.maps == 2 ? 3 : 1, tokens, tokens});
  scan.sums.resize(heads * batch);
  parallel_for(heads * batch, [&](Index i) {
    const Index head = i / batch, b = i % batch, size = scan.first_maps.size() / heads;
    real* first_maps = b == 0 ? scan.first_maps.data() + head * size : nullptr;
    scan.sums[i] = HeadScan(view, b, head, first_maps).run();
  });
  return scan;
}

}  // namespace difftape::run
