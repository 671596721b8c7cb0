#include "train/run/diagnostics/diagnose.h"

#include <algorithm>
#include <cmath>

#include "core/parallel.h"
#include "train/run/diagnostics/attention_measures.h"
#include "train/run/records/metric_registry.h"

namespace difftape::run {

namespace {

/// Collects the metrics of one layer.
class LayerMetrics {
 public:
  explicit LayerMetrics(Index layer) : layer_(layer) {}
  void add(const char* name, MetricValue value) {
    metrics_.emplace_back(metric_of(name, std::to_string(layer_)), std::move(value));
  }
  /// A list with f of each head.
  template <class F>
  void add_heads(const char* name, const std::vector<HeadMeasures>& heads, F&& f) {
    std::vector<double> values;
    for (const HeadMeasures& head : heads) values.push_back(f(head));
    add(name, std::move(values));
  }
  Metrics take() { return std::move(metrics_); }

 private:
  Index layer_;
  Metrics metrics_;
};

void add_two_maps(LayerMetrics& to, const AttentionMeasures& m) {
  using Head = HeadMeasures;
  to.add(metric("attn/lambda"), m.lambda.mean);
  to.add(metric("attn/lambda_std"), m.lambda.std);
  to.add(metric("attn/lambda_min"), m.lambda.min);
  to.add(metric("attn/lambda_max"), m.lambda.max);
  if (m.lambda_rms_correlation)
    to.add(metric("attn/lambda_rms_correlation"), *m.lambda_rms_correlation);
  to.add_heads(metric("attn/head/lambda"), m.heads, [](const Head& h) { return h.lambda; });
  to.add(metric("attn/map1/sink_rate"), m.map_sink_rate[0]);
  to.add(metric("attn/map2/sink_rate"), m.map_sink_rate[1]);
  to.add_heads(metric("attn/map1/first_token_mass"), m.heads,
               [](const Head& h) { return h.map_first_token[0]; });
  to.add_heads(metric("attn/map2/first_token_mass"), m.heads,
               [](const Head& h) { return h.map_first_token[1]; });
  to.add_heads(metric("attn/map1/logit_max"), m.heads,
               [](const Head& h) { return h.map_logit_max[0]; });
  to.add_heads(metric("attn/map2/logit_max"), m.heads,
               [](const Head& h) { return h.map_logit_max[1]; });
}

/// Logged of data that knows queries.
Metrics answer_metrics(Index layer, const AnswerAttention& attention) {
  LayerMetrics to(layer);
  to.add(metric("attn/answer"), attention.answer);
  to.add(metric("attn/noise"), attention.noise);
  return to.take();
}

Metrics rounding_metrics(Index layer, const AttentionView& view) {
  LayerMetrics to(layer);
  to.add(metric("attn/rounding_error"), rounding_error(view));
  return to.take();
}

class Probe : public Observer {
 public:
  explicit Probe(std::span<const RetrievalTarget> queries) : queries_(queries) {}

  void attention(Index layer, const AttentionView& view) override {
    AttentionMeasures measures = measure_attention(view, queries_);
    append(attention_metrics(layer, measures));
    append(rounding_metrics(layer, view));
    if (!queries_.empty()) append(answer_metrics(layer, measures.to_answer));
    if (measures.maps == 2) {
      found.distributions.emplace_back(metric_of(metric("attn/lambda"), std::to_string(layer)),
                                       std::move(measures.lambdas));
    }
    found.maps.layers.push_back(std::move(measures.first_maps));
  }
  void hidden(Index layer, const Tensor& x) override { append(activation_metrics(layer, x)); }

  Diagnostics found;

 private:
  void append(Metrics&& metrics) { std::ranges::move(metrics, std::back_inserter(found.metrics)); }

  std::span<const RetrievalTarget> queries_;
};

}  // namespace

Metrics attention_metrics(Index layer, const AttentionMeasures& m) {
  using Head = HeadMeasures;
  LayerMetrics to(layer);
  to.add(metric("attn/context_rms"), m.context_rms.mean);
  to.add(metric("attn/context_rms_min"), m.context_rms.min);
  to.add(metric("attn/context_rms_max"), m.context_rms.max);
  to.add(metric("attn/context_rms_outside"), m.context_outside);
  to.add(metric("attn/sink_rate"), m.sink_rate);
  to.add(metric("attn/first_token_mass"), m.first_token);
  to.add(metric("attn/entropy"), m.entropy);
  to.add(metric("attn/sparsity"), m.sparsity);
  if (m.output_cosine) to.add(metric("attn/output_cosine"), *m.output_cosine);
  to.add(metric("attn/logit_max"), m.logits.top1);
  to.add(metric("attn/logit_median"), m.logits.median);
  to.add(metric("attn/logit_topk"), list_of(m.logits));
  to.add_heads(metric("attn/head/context_rms"), m.heads,
               [](const Head& h) { return h.context_rms; });
  to.add_heads(metric("attn/head/first_token_mass"), m.heads,
               [](const Head& h) { return h.first_token; });
  to.add_heads(metric("attn/head/entropy"), m.heads, [](const Head& h) { return h.entropy; });
  to.add_heads(metric("attn/head/logit_max"), m.heads, [](const Head& h) { return h.logit_max; });
  if (m.maps == 2) add_two_maps(to, m);
  return to.take();
}

Metrics activation_metrics(Index layer, const Tensor& hidden) {
  std::vector<real> magnitudes(static_cast<size_t>(hidden.size()));
  std::ranges::transform(hidden.values(), magnitudes.begin(), [](real x) { return std::abs(x); });
  const TopValues top = top_values(magnitudes);
  LayerMetrics to(layer);
  to.add(metric("act/max"), top.top1);
  to.add(metric("act/max_over_median"), top.top1 / top.median);
  to.add(metric("act/kurtosis"), kurtosis(hidden));
  to.add(metric("act/topk"), list_of(top));
  return to.take();
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
  all.tokens.resize(static_cast<size_t>(all.batch * (all.seq + 1)));
  std::erase_if(all.queries, [&](const RetrievalTarget& query) { return query.row >= all.batch; });
  return all;
}

}  // namespace difftape::run
