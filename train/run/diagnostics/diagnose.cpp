#include "train/run/diagnostics/diagnose.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "train/run/diagnostics/attention_measures.h"
#include "train/run/records/metric_registry.h"

namespace difftape::run {
namespace {

/// Metrics and their values in one layer; nothing: the layer has none.
using Table = std::vector<std::pair<const char*, std::optional<MetricValue>>>;

Metrics of_layer(Index layer, Table table) {
  Metrics metrics;
  for (auto& [name, value] : table)
    if (value) metrics.emplace_back(metric_of(name, std::to_string(layer)), *std::move(value));
  return metrics;
}

/// A member of each head, or one of the two numbers of a member.
std::vector<double> of_heads(const AttentionMeasures& m, double HeadMeasures::*member) {
  std::vector<double> values;
  for (const HeadMeasures& head : m.heads) values.push_back(head.*member);
  return values;
}
std::vector<double> of_heads(const AttentionMeasures& m,
                             std::array<double, 2> HeadMeasures::*member, size_t map) {
  std::vector<double> values;
  for (const HeadMeasures& head : m.heads) values.push_back((head.*member)[map]);
  return values;
}

class Probe : public Observer {
 public:
  explicit Probe(std::span<const RetrievalTarget> queries) : queries_(queries) {}

  void attention(Index layer, const AttentionView& view) override {
    AttentionMeasures measures = measure_attention(view, queries_);
    append(attention_metrics(layer, measures));
    append(of_layer(layer, {{metric("attn/rounding_error"), rounding_error(view)}}));
    if (!queries_.empty()) {
      append(of_layer(layer, {{metric("attn/answer"), measures.to_answer.answer},
                              {metric("attn/noise"), measures.to_answer.noise}}));
    }
    if (measures.maps == 2) {
      found.distributions.emplace_back(metric_of(metric("attn/lambda"), std::to_string(layer)),
                                       std::move(measures.lambdas));
    }
    found.maps.layers.push_back(std::move(measures.first_maps));
  }
  void hidden(Index layer, const Tensor& x) override { append(activation_metrics(layer, x)); }
  void routing(Index layer, const RoutingView& view) override {
    append(routing_metrics(layer, view));
  }

  Diagnostics found;

 private:
  void append(Metrics&& metrics) { std::ranges::move(metrics, std::back_inserter(found.metrics)); }

  std::span<const RetrievalTarget> queries_;
};

}  // namespace

Metrics attention_metrics(Index layer, const AttentionMeasures& m) {
  using Head = HeadMeasures;
  Table table{{metric("attn/context_rms"), m.context_rms.mean},
              {metric("attn/context_rms_min"), m.context_rms.min},
              {metric("attn/context_rms_max"), m.context_rms.max},
              {metric("attn/context_rms_outside"), m.context_outside},
              {metric("attn/sink_rate"), m.sink_rate},
              {metric("attn/first_token_mass"), m.first_token},
              {metric("attn/entropy"), m.entropy},
              {metric("attn/sparsity"), m.sparsity},
              {metric("attn/output_cosine"), m.output_cosine},
              {metric("attn/logit_max"), m.logits.top1},
              {metric("attn/logit_median"), m.logits.median},
              {metric("attn/logit_topk"), list_of(m.logits)},
              {metric("attn/head/context_rms"), of_heads(m, &Head::context_rms)},
              {metric("attn/head/first_token_mass"), of_heads(m, &Head::first_token)},
              {metric("attn/head/entropy"), of_heads(m, &Head::entropy)},
              {metric("attn/head/logit_max"), of_heads(m, &Head::logit_max)}};
  const Table of_two_maps{
      {metric("attn/lambda"), m.lambda.mean},
      {metric("attn/lambda_std"), m.lambda.std},
      {metric("attn/lambda_min"), m.lambda.min},
      {metric("attn/lambda_max"), m.lambda.max},
      {metric("attn/lambda_rms_correlation"), m.lambda_rms_correlation},
      {metric("attn/head/lambda"), of_heads(m, &Head::lambda)},
      {metric("attn/map1/sink_rate"), m.map_sink_rate[0]},
      {metric("attn/map2/sink_rate"), m.map_sink_rate[1]},
      {metric("attn/map1/first_token_mass"), of_heads(m, &Head::map_first_token, 0)},
      {metric("attn/map2/first_token_mass"), of_heads(m, &Head::map_first_token, 1)},
      {metric("attn/map1/logit_max"), of_heads(m, &Head::map_logit_max, 0)},
      {metric("attn/map2/logit_max"), of_heads(m, &Head::map_logit_max, 1)}};
  if (m.maps == 2) table.insert(table.end(), of_two_maps.begin(), of_two_maps.end());
  return of_layer(layer, std::move(table));
}

Metrics activation_metrics(Index layer, const Tensor& hidden) {
  std::vector<real> magnitudes(hidden.size());
  std::ranges::transform(hidden.values(), magnitudes.begin(), [](real x) { return std::abs(x); });
  const TopValues top = top_values(magnitudes);
  return of_layer(layer, {{metric("act/max"), top.top1},
                          {metric("act/max_over_median"), top.top1 / top.median},
                          {metric("act/kurtosis"), kurtosis(hidden)},
                          {metric("act/topk"), list_of(top)},
                          {metric("act/rms"), rms(hidden)}});
}

Metrics routing_metrics(Index layer, const RoutingView& view) {
  const Routing& routing = view.routing;
  std::vector<double> load;
  for (Index e = 0; e < routing.experts; ++e) {
    load.push_back(static_cast<double>(routing.load(e)) /
                   static_cast<double>(routing.chosen.size()));
  }
  double entropy = 0;
  for (Index i = 0; i < routing.tokens(); ++i) {
    const std::span logits(view.logits.row(i), static_cast<size_t>(routing.experts));
    const auto top = static_cast<double>(std::ranges::max(logits));
    std::vector<double> scores;
    for (const real logit : logits) {
      const auto z = static_cast<double>(logit);
      scores.push_back(view.rule.score == RouterScore::softmax ? std::exp(z - top)
                                                               : 1 / (1 + std::exp(-z)));
    }
    const double total = std::accumulate(scores.begin(), scores.end(), 0.0);
    for (const double score : scores)
      if (score > 0) entropy -= score / total * std::log(score / total);
  }
  return of_layer(
      layer, {{metric("moe/load_max"), *std::ranges::max_element(load)},
              {metric("moe/load"), std::move(load)},
              {metric("moe/router_entropy"), entropy / static_cast<double>(routing.tokens())}});
}

Diagnostics diagnose(LanguageModel& model, const Batch& batch, Index eos_token_id,
                     Precision precision) {
  Tape tape(Tape::Mode::inference, precision);
  Probe probe(batch.queries);
  const std::vector<std::int32_t> inputs = batch.inputs();
  model.observe(tape, {inputs, batch.batch, batch.seq, batch.document_offsets(eos_token_id)},
                probe);
  return std::move(probe.found);
}

Batch diagnostic_batch(const Dataset& data, Index sequences) {
  Batch first = data.val_batch(0);
  Batch all{first.batch, first.seq, std::move(first.tokens)};
  all.queries = std::move(first.queries);
  for (Index i = 1; all.batch < sequences && i < data.val_batches(); ++i) {
    Batch next = data.val_batch(i);
    all.tokens.insert(all.tokens.end(), next.tokens.begin(), next.tokens.end());
    for (RetrievalTarget& query : next.queries) {
      query.row += all.batch;
      all.queries.push_back(query);
    }
    all.batch += next.batch;
  }
  all.batch = std::min(all.batch, sequences);
  all.tokens.resize(all.batch * (all.seq + 1));
  std::erase_if(all.queries, [&](const RetrievalTarget& query) { return query.row >= all.batch; });
  return all;
}

}  // namespace difftape::run
