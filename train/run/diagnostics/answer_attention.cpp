#include "train/run/diagnostics/answer_attention.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "core/parallel.h"
#include "train/run/diagnostics/map_rows.h"

namespace difftape::run {

namespace {

using Eigen::ArrayXd;

/// Row t of the map of a head.
ArrayXd head_row(const AttentionView& view, const MapRows& rows, const RetrievalTarget& query,
                 Index head) {
  ArrayXd first = rows.row(0, query.position).probabilities;
  if (view.mapping.maps == 1) return first;
  return normalised_difference(first, rows.row(1, query.position).probabilities,
                               lambda_at(view, query.row, query.position, head));
}

/// What a row whose first entry is that of key `first` pays the tokens of a span.
double paid(const ArrayXd& row, Index first, const Span& span) {
  const Index begin = std::max(span.begin - first, Index{0});
  const Index end = std::min(span.end - first, static_cast<Index>(row.size()));
  return begin < end ? row.segment(begin, end - begin).sum() : 0;
}

/// Sums over the queries of one head.
AnswerAttention sums_of_head(const AttentionView& view, std::span<const RetrievalTarget> queries,
                             Index head) {
  AnswerAttention sums{0, 0};
  std::optional<MapRows> rows;
  Index of = -1;
  for (const RetrievalTarget& query : queries) {
    if (query.row != of) rows.emplace(view, of = query.row, head);
    const ArrayXd row = head_row(view, *rows, query, head);
    const Index first = first_key(view, query.row, query.position);
    const double answer = paid(row, first, query.answer);
    sums.answer += answer;
    sums.noise += paid(row, first, query.noise) - answer;  // the answer lies within
  }
  return sums;
}

}  // namespace

AnswerAttention answer_attention(const AttentionView& view,
                                 std::span<const RetrievalTarget> queries) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  if (queries.empty()) return {kNaN, kNaN};
  const auto heads = static_cast<Index>(view.mapping.outputs.size());
  std::vector<AnswerAttention> of_heads(static_cast<size_t>(heads));
  parallel_for(heads, [&](Index head) {
    of_heads[static_cast<size_t>(head)] = sums_of_head(view, queries, head);
  });
  AnswerAttention mean{0, 0};
  const auto count = static_cast<double>(heads) * static_cast<double>(queries.size());
  for (const AnswerAttention& head : of_heads) {
    mean.answer += head.answer / count;
    mean.noise += head.noise / count;
  }
  return mean;
}

}  // namespace difftape::run
