#include "train/run/diagnostics/diagnose.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "train/run/diagnostics/attention_measures.h"
#include "train/run/records/metric_registry.h"
#include "train/stats/descriptive.h"

namespace difftape::run {
namespace {

/// Returns the mean over tokens of the entropy of the normalized scores, in nats.
double router_entropy(const RoutingView& view) {
  const Routing& routing = view.routing;
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
  return entropy / static_cast<double>(routing.tokens());
}

class Probe : public Observer {
 public:
  explicit Probe(std::span<const RetrievalTarget> queries) : queries_(queries) {}

  void attention(Index layer, const AttentionView& view) override {
    AttentionMeasures measures = measure_attention(view);
    append(layer, measures.metrics);
    append(layer, {{metric("attn/rounding_error"), rounding_error(view)}});
    if (!queries_.empty()) {
      const AnswerAttention to_answer = answer_attention(view, queries_);
      append(layer,
             {{metric("attn/answer"), to_answer.answer}, {metric("attn/noise"), to_answer.noise}});
    }
    found.maps.layers.push_back(std::move(measures.first_maps));
  }
  void hidden(Index layer, const Tensor& x) override { append(layer, activation_metrics(x)); }
  void routing(Index layer, const RoutingView& view) override {
    const Routing& routing = view.routing;
    const std::string load_of = metric_of(metric("moe/load"), std::to_string(layer));
    double largest = 0;
    for (Index e = 0; e < routing.experts; ++e) {
      const double load =
          static_cast<double>(routing.load(e)) / static_cast<double>(routing.chosen.size());
      found.metrics.emplace_back(metric_of(load_of, std::to_string(e)), load);
      largest = std::max(largest, load);
    }
    append(layer, {{metric("moe/load_max"), largest},
                   {metric("moe/router_entropy"), router_entropy(view)}});
  }

  Diagnostics found;

 private:
  void append(Index layer, const Metrics& metrics) {
    for (const auto& [name, value] : metrics)
      found.metrics.emplace_back(metric_of(name, std::to_string(layer)), value);
  }

  std::span<const RetrievalTarget> queries_;
};

}  // namespace

Metrics activation_metrics(const Tensor& hidden) {
  std::vector<double> magnitudes(hidden.size());
  std::ranges::transform(hidden.values(), magnitudes.begin(),
                         [](real x) { return static_cast<double>(std::abs(x)); });
  const double max = spread_of(magnitudes).max;
  const double median = std::isnan(max) ? kNaN : stats::quantile(std::move(magnitudes), 0.5);
  return {{metric("act/max"), max},
          {metric("act/max_over_median"), max / median},
          {metric("act/kurtosis"), kurtosis(hidden)},
          {metric("act/rms"), rms(hidden)}};
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
