#include "train/run/diagnostics/map_scan.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>

#include "core/parallel.h"
#include "core/real.h"

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

using Eigen::ArrayXd;

/// The pairs of query and key of a head, numbered through all sequences, which are the same in all
/// heads. Those that `stride` divides are kept.
struct Pairs {
  std::vector<Index> offsets;  // number of the first of each sequence
  Index count = 0;             // of all
  Index stride = 1;

  Index kept_before(Index number) const { return (number + stride - 1) / stride; }
};

Pairs pairs_of(const AttentionView& view, Index most_of_a_map) {
  Pairs pairs;
  for (Index b = 0; b < view.q.shape()[0]; ++b) {
    pairs.offsets.push_back(pairs.count);
    for (Index t = 0; t < view.q.shape()[1]; ++t) pairs.count += t - first_key(view, b, t) + 1;
  }
  // Odd: of sequences of a power of two an even stride would keep only every other key.
  while (pairs.kept_before(pairs.count) > std::max<Index>(most_of_a_map, 1)) pairs.stride += 2;
  return pairs;
}

/// The largest of many numbers, NaN left out: at least kTop of them if there are so many.
class Largest {
 public:
  void add(real x) {
    if (std::isnan(x) || (values_.size() >= kTop && x <= least_)) return;
    values_.push_back(x);
    if (values_.size() < 2 * kTop) return;
    std::nth_element(values_.begin(), values_.begin() + (kTop - 1), values_.end(),
                     std::greater<>());
    values_.resize(kTop);
    least_ = values_.back();
  }
  const std::vector<real>& values() const { return values_; }

 private:
  static constexpr size_t kTop = 100;  // the last rank of TopValues
  std::vector<real> values_;
  real least_ = 0;  // until 2 kTop were seen, all are kept
};

/// Where the maps of one head and sequence put what is kept of each pair.
struct Kept {
  std::array<real*, 2> magnitudes{};  // |logits| of A1, A2 from the first kept pair on
  Index stride = 1, pair = 0;         // of pairs that are kept; number of the first pair
  Largest* largest = nullptr;         // of all |logits|; null: all pairs are kept
  real* first_maps = nullptr;         // (S, T, T); null: not the first sequence
};

real rounded(double x) { return static_cast<real>(x); }

/// The maps of one head on one sequence, query by query.
class HeadScan {
 public:
  HeadScan(const AttentionView& view, Index b, Index head, const Kept& kept)
      : view_(view), b_(b), head_(head), rows_(view, b, head), kept_(kept) {}

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
      keep_logits(map, row.logits.abs());
      look_at(map, t, row.probabilities);
      maps[map] = std::move(row.probabilities);
    }
    kept_.pair += maps[0].size();
    if (count == 1) {
      add_row(maps[0]);
      return;
    }
    const ArrayXd both = normalised_difference(maps[0], maps[1], lambda_at(view_, b_, t, head_));
    look_at(2, t, both);
    add_row(both);
  }

  /// Of the map of the head.
  void add_row(const ArrayXd& row) {
    sums_.entropy += entropy(row);
    sums_.pairs += static_cast<double>(row.size());
    sums_.sparse += row.isNaN().any() ? kNaN : static_cast<double>((row < kSparseWeight).count());
  }

  void keep_logits(size_t map, const ArrayXd& magnitudes) {
    sums_.logit_max[map] = larger(sums_.logit_max[map], magnitudes.maxCoeff<Eigen::PropagateNaN>());
    const Index over = kept_.pair % kept_.stride, size = magnitudes.size();
    for (Index i = over == 0 ? 0 : kept_.stride - over; i < size; i += kept_.stride) {
      *kept_.magnitudes[map]++ = rounded(magnitudes[i]);
    }
    if (!kept_.largest) return;
    for (const double magnitude : magnitudes) kept_.largest->add(rounded(magnitude));
  }

  /// Row t of A1, A2 or the map of the head.
  void look_at(size_t which, Index t, const ArrayXd& row) {
    const Index tokens = std::min(view_.q.shape()[1], kSinkTokens);
    if (t >= tokens) return;
    const Index first = t + 1 - row.size();
    if (first == 0) sums_.first_token[which] += row[0];
    if (!kept_.first_maps) return;
    const Index at = (static_cast<Index>(which) * tokens + t) * tokens + first;
    std::transform(row.begin(), row.end(), kept_.first_maps + at, rounded);
  }

  const AttentionView& view_;
  Index b_, head_;
  MapRows rows_;
  Kept kept_;
  MapSums sums_;
};

/// Ranks of the largest, with the median of a part of all.
TopValues with_largest(TopValues part, std::span<const Largest> all, bool nan) {
  std::vector<real> values;
  for (const Largest& some : all) {
    values.insert(values.end(), some.values().begin(), some.values().end());
  }
  // A NaN counts even where it is not in the part that was kept.
  if (nan) values.push_back(std::numeric_limits<real>::quiet_NaN());
  TopValues top = top_values(values);
  if (!nan) top.median = part.median;
  return top;
}

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
  const double cap = view_.logit_softcap;
  const ArrayXd scores = cap > 0 ? ArrayXd((row.logits / cap).tanh() * cap) : row.logits;
  double max = scores.maxCoeff();
  if (of.has_sink) max = std::max(max, of.sink);
  row.probabilities = (scores - max).exp();
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

double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }

MapScan scan_maps(const AttentionView& view, Index most) {
  const auto heads = static_cast<Index>(view.mapping.outputs.size());
  const Index batch = view.q.shape()[0], maps = view.mapping.maps;
  const Index tokens = std::min(view.q.shape()[1], kSinkTokens);
  const Pairs pairs = pairs_of(view, most / (heads * maps));
  const Index of_map = pairs.kept_before(pairs.count);
  std::vector<real> magnitudes(static_cast<size_t>(heads * maps * of_map));
  std::vector<Largest> largest(static_cast<size_t>(pairs.stride > 1 ? heads * batch : 0));
  MapScan scan;
  scan.first_maps = Tensor::zeros({heads, maps == 2 ? 3 : 1, tokens, tokens});
  scan.sums.resize(static_cast<size_t>(heads * batch));
  parallel_for(heads * batch, [&](Index i) {
    const Index head = i / batch, b = i % batch;
    const Index pair = pairs.offsets[static_cast<size_t>(b)];
    real* of_sequence = magnitudes.data() + head * maps * of_map + pairs.kept_before(pair);
    const Kept kept{
        {of_sequence, maps == 2 ? of_sequence + of_map : nullptr},
        pairs.stride,
        pair,
        largest.empty() ? nullptr : &largest[static_cast<size_t>(i)],
        b == 0 ? scan.first_maps.data() + head * scan.first_maps.size() / heads : nullptr};
    scan.sums[static_cast<size_t>(i)] = HeadScan(view, b, head, kept).run();
  });
  scan.logits = top_values(magnitudes);
  if (!largest.empty()) {
    const bool nan = std::ranges::any_of(scan.sums, [](const MapSums& sums) {
      return std::isnan(sums.logit_max[0]) || std::isnan(sums.logit_max[1]);
    });
    scan.logits = with_largest(scan.logits, largest, nan);
  }
  return scan;
}

}  // namespace difftape::run
