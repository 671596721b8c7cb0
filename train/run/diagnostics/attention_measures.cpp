#include "train/run/diagnostics/attention_measures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>

#include "core/parallel.h"
#include "core/real.h"
#include "train/run/records/metric_registry.h"
#include "train/stats/descriptive.h"

namespace difftape::run {
namespace {

Index heads_of(const AttentionView& view) { return std::ssize(view.mapping.outputs); }

/// Returns the RMS of the context of each head and token, (output heads, B T).
std::vector<double> context_rms(const AttentionView& view) {
  const Index heads = heads_of(view), width = view.context.shape().last();
  const Index tokens = view.context.size() / (heads * width);
  std::vector<double> rms(heads * tokens);
  parallel_ranges(tokens, row_grain(heads * width), [&](Index begin, Index count) {
    for (Index i = begin * heads; i < (begin + count) * heads; ++i) {
      const Eigen::Map<const Eigen::Array<real, Eigen::Dynamic, 1>> c(view.context.row(i), width);
      rms[i % heads * tokens + i / heads] =
          std::sqrt(c.cast<double>().square().sum() / static_cast<double>(width));
    }
  });
  return rms;
}

/// Returns lambda of each head and token, (output heads, B T).
std::vector<double> lambdas(const AttentionView& view) {
  std::vector<double> all;
  for (Index head = 0; head < heads_of(view); ++head) {
    for (Index b = 0; b < view.q.shape()[0]; ++b)
      for (Index t = 0; t < view.q.shape()[1]; ++t) all.push_back(lambda_at(view, b, t, head));
  }
  return all;
}

std::span<const double> of_head(const std::vector<double>& values, size_t head, size_t heads) {
  const size_t tokens = values.size() / heads;
  return std::span(values).subspan(head * tokens, tokens);
}

/// Measurements of one output head over all sequences and tokens.
struct HeadMeasures {
  double first_token = 0, entropy = 0;
  std::array<double, 2> map_first_token{};  ///< per softmax map
};

/// Returns the Pearson correlation over the tokens of a head, averaged over heads.
double mean_correlation(const std::vector<double>& a, const std::vector<double>& b, size_t heads) {
  double sum = 0;
  for (size_t i = 0; i < heads; ++i)
    sum += stats::correlation(of_head(a, i, heads), of_head(b, i, heads));
  return sum / static_cast<double>(heads);
}

/// Returns the sum of f, a function or member, over heads or maps.
template <class Each, class F>
double sum_over(const std::vector<Each>& all, F f) {
  double sum = 0;
  for (const Each& each : all) sum += std::invoke(f, each);
  return sum;
}
template <class F>
double mean_over(const std::vector<HeadMeasures>& heads, F f) {
  return sum_over(heads, f) / static_cast<double>(heads.size());
}

/// Returns 1 if a head with this weight of token 1 is a sink, else 0; NaN for NaN.
double is_sink(double first_token) {
  if (std::isnan(first_token)) return first_token;
  return first_token > kSinkThreshold ? 1 : 0;
}

/// Combines the sums of all sequences of a head.
HeadMeasures head_of(const AttentionView& view, std::span<const MapSums> sequences) {
  const Index seq = view.q.shape()[1], batch = std::ssize(sequences);
  const auto queries = static_cast<double>(batch * seq);
  const auto early = static_cast<double>(batch * std::min(seq, kSinkTokens));
  HeadMeasures head;
  std::array<double, 3> first{};
  for (const MapSums& sums : sequences) {
    for (size_t map = 0; map < 3; ++map) first[map] += sums.first_token[map] / early;
    head.entropy += sums.entropy / queries;
  }
  head.map_first_token = {first[0], first[1]};
  head.first_token = view.mapping.maps == 2 ? first[2] : first[0];
  return head;
}

using Eigen::ArrayXd;

/// Returns the row of the map of a head at the position of a query.
ArrayXd head_row(const AttentionView& view, const MapRows& rows, const RetrievalTarget& query,
                 Index head) {
  ArrayXd first = rows.row(0, query.position).probabilities;
  if (view.mapping.maps == 1) return first;
  return normalized_difference(first, rows.row(1, query.position).probabilities,
                               lambda_at(view, query.row, query.position, head));
}

/// Returns the weight of a span in a row that begins at key `first`.
double attention_to(const ArrayXd& row, Index first, const Span& span) {
  const Index begin = std::max(span.begin - first, Index{0});
  const Index end = std::min(span.end - first, std::ssize(row));
  return begin < end ? row.segment(begin, end - begin).sum() : 0;
}

/// Returns sums over the queries of one head.
AnswerAttention sums_of_head(const AttentionView& view, std::span<const RetrievalTarget> queries,
                             Index head) {
  AnswerAttention sums{0, 0};
  std::optional<MapRows> rows;
  Index of = -1;
  for (const RetrievalTarget& query : queries) {
    if (query.row != of) rows.emplace(view, of = query.row, head);
    const ArrayXd row = head_row(view, *rows, query, head);
    const Index first = first_key(view, query.row, query.position);
    const double answer = attention_to(row, first, query.answer);
    sums.answer += answer;
    sums.noise += attention_to(row, first, query.noise) - answer;  // the span has the answer
  }
  return sums;
}

}  // namespace

AnswerAttention answer_attention(const AttentionView& view,
                                 std::span<const RetrievalTarget> queries) {
  if (queries.empty()) return {kNaN, kNaN};
  const Index heads = heads_of(view);
  std::vector<AnswerAttention> of_heads(heads);
  parallel_for(heads, [&](Index head) { of_heads[head] = sums_of_head(view, queries, head); });
  AnswerAttention mean{0, 0};
  const auto count = static_cast<double>(heads) * static_cast<double>(queries.size());
  for (const AnswerAttention& head : of_heads) {
    mean.answer += head.answer / count;
    mean.noise += head.noise / count;
  }
  return mean;
}

std::optional<double> smallest_output_cosine(const HeadMapping& mapping, const Tensor& weight) {
  if (!weight.allocated()) return std::nullopt;
  using Rows = Eigen::Matrix<real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const auto heads = std::ssize(mapping.outputs);
  const Index width = weight.shape()[1] / heads;
  const Eigen::Map<const Rows> w(weight.data(), weight.shape()[0], weight.shape()[1]);
  std::optional<double> smallest;
  for (Index i = 0; i < heads; ++i) {
    const Eigen::MatrixXd a = w.middleCols(i * width, width).cast<double>();
    for (Index j = 0; j < i; ++j) {
      const OutputHead &first = mapping.outputs[i], &second = mapping.outputs[j];
      if (first.value != second.value) continue;
      const Eigen::MatrixXd b = w.middleCols(j * width, width).cast<double>();
      const double cosine = a.cwiseProduct(b).sum() / (a.norm() * b.norm());
      if (!smallest || !(cosine >= *smallest)) smallest = cosine;
    }
  }
  return smallest;
}

double rounding_error(const AttentionView& view) {
  AttentionInputs inputs = view;
  const Tensor full = attention_forward(inputs).out;
  inputs.precision = Precision::bf16_emulated;
  const Tensor rounded = attention_forward(inputs).out;
  using Values = Eigen::Map<const Eigen::Array<real, Eigen::Dynamic, 1>>;
  const Eigen::ArrayXd a = Values(full.data(), full.size()).cast<double>();
  const Eigen::ArrayXd b = Values(rounded.data(), rounded.size()).cast<double>();
  return std::sqrt((a - b).square().sum() / a.square().sum());
}

AttentionMeasures measure_attention(const AttentionView& view) {
  using Head = HeadMeasures;
  const bool two_maps = view.mapping.maps == 2;
  const auto heads = static_cast<size_t>(heads_of(view));
  const auto batch = static_cast<size_t>(view.q.shape()[0]);
  const MapScan scan = scan_maps(view);
  const std::vector<double> rms = context_rms(view);
  AttentionMeasures found{{}, scan.first_maps};
  std::vector<HeadMeasures> all;
  for (size_t i = 0; i < heads; ++i)
    all.push_back(head_of(view, std::span(scan.sums).subspan(i * batch, batch)));
  const auto add = [&](const char* name, double value) { found.metrics.emplace_back(name, value); };
  const Spread context = spread_of(rms);
  add(metric("attn/context_rms"), context.mean);
  add(metric("attn/context_rms_max"), context.max);
  add(metric("attn/sink_rate"),
      mean_over(all, [](const Head& h) { return is_sink(h.first_token); }));
  add(metric("attn/first_token_mass"), mean_over(all, &Head::first_token));
  add(metric("attn/entropy"), mean_over(all, &Head::entropy));
  add(metric("attn/sparsity"),
      sum_over(scan.sums, &MapSums::sparse) / sum_over(scan.sums, &MapSums::pairs));
  if (const auto cosine = smallest_output_cosine(view.mapping, view.output_weight))
    add(metric("attn/output_cosine"), *cosine);
  double logit_max = 0;
  for (const MapSums& sums : scan.sums)
    for (const double of_map : sums.logit_max) logit_max = larger(logit_max, of_map);
  add(metric("attn/logit_max"), logit_max);
  if (!two_maps) return found;
  const std::vector<double> all_lambdas = lambdas(view);
  const Spread lambda = spread_of(all_lambdas);
  add(metric("attn/lambda"), lambda.mean);
  add(metric("attn/lambda_std"), lambda.std);
  add(metric("attn/lambda_min"), lambda.min);
  add(metric("attn/lambda_max"), lambda.max);
  if (view.lambda.size() > 1)
    add(metric("attn/lambda_rms_correlation"), mean_correlation(all_lambdas, rms, heads));
  const std::array rates{metric("attn/map1/sink_rate"), metric("attn/map2/sink_rate")};
  for (size_t map = 0; map < 2; ++map)
    add(rates[map],
        mean_over(all, [map](const Head& h) { return is_sink(h.map_first_token[map]); }));
  return found;
}

}  // namespace difftape::run
