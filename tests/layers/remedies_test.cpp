// Remedies against instability: embedding norm, logit soft cap, z-loss, QK-clip.
#include "layers/attention/qk_clip.h"
#include "layers/language_model.h"
#include "tests/layers/attention_layer.h"
#include "tests/layers/tokens.h"

namespace difftape {
namespace {

const TokenBatch kBatch{kTokens, 2, 4};

ModelConfig config_of(const std::string& kind = "softmax", Index kv_heads = 4) {
  ModelConfig config;
  config.d_model = 16;
  config.num_layers = 2;
  config.num_heads = 4;
  config.num_kv_heads = kv_heads;
  config.d_ff = 24;
  config.max_seq_len = 16;
  config.vocab_size = 12;
  config.attention.kind = kind;
  config.init = {.embedding_std = 1, .projection_std = ProjectionStd{1, true}};
  return config;
}

/// A model with its initial values.
struct Drawn : LanguageModel {
  explicit Drawn(const ModelConfig& config) : LanguageModel(config) { parameters().initialize(3); }
};

Tensor logits_of(LanguageModel& model) {
  Tape tape(Tape::Mode::inference);
  return model.logits(tape, kBatch).value();
}

TEST(Remedies, soft_capped_logits_and_their_loss_match_the_definition) {
  Drawn plain(config_of());
  ModelConfig config = config_of();
  config.final_logit_softcap = 0.7;
  Drawn capped(config);
  const Tensor a = logits_of(plain), b = logits_of(capped);
  double loss = 0;
  for (Index row = 0; row < 8; ++row) {
    double sum = 0;
    for (Index v = 0; v < 12; ++v) {
      EXPECT_NEAR(b.row(row)[v], 0.7 * std::tanh(a.row(row)[v] / 0.7), 1e-14);
      sum += std::exp(b.row(row)[v]);
    }
    loss += (std::log(sum) - b.row(row)[kTargets[row]]) / 8;
  }
  Tape tape;
  LossTerms terms;
  EXPECT_NEAR(capped.loss(tape, kBatch, kTargets, {}, &terms).value().item(), loss, 1e-13);
  EXPECT_NEAR(terms.cross_entropy, loss, 1e-13);
  const auto both = capped.loss_and_logits(tape, kBatch, kTargets);
  EXPECT_TRUE(test::same(both.logits.value(), b));
  EXPECT_NEAR(both.terms.cross_entropy, loss, 1e-13);
}

TEST(Remedies, the_z_loss_is_the_mean_square_of_log_z_beside_the_cross_entropy) {
  ModelConfig config = config_of();
  Drawn plain(config);
  config.z_loss_weight = 0.25;
  Drawn model(config);
  const Tensor logits = logits_of(model);
  double squares = 0;
  for (Index row = 0; row < 8; ++row) {
    double sum = 0;
    for (Index v = 0; v < 12; ++v) sum += std::exp(logits.row(row)[v]);
    squares += std::log(sum) * std::log(sum) / 8;
  }
  Tape tape;
  LossTerms terms, without;
  const Var loss = model.loss(tape, kBatch, kTargets, {}, &terms);
  const Var expected = plain.loss(tape, kBatch, kTargets, {}, &without);
  EXPECT_NEAR(terms.squared_log_z, squares, 1e-13);
  EXPECT_EQ(terms.cross_entropy, expected.value().item());
  EXPECT_EQ(without.cross_entropy, expected.value().item());
  EXPECT_NEAR(loss.value().item(), expected.value().item() + 0.25 * squares, 1e-13);
}

TEST(Remedies, normalized_embeddings_are_invariant_to_scale) {
  ModelConfig config = config_of();
  config.embedding_norm = true;
  config.norm_eps = 1e-30;
  Drawn model(config);
  const Parameter* norm = model.parameters().find("model.embedding_norm.weight");
  ASSERT_NE(norm, nullptr);
  EXPECT_EQ(norm->shape, Shape{16});
  EXPECT_EQ(model.parameters().size(), Drawn(config_of()).parameters().size() + 1);
  const Tensor before = logits_of(model);
  for (real& x : model.parameters().find("model.embed_tokens.weight")->value.values()) x *= 100;
  const Tensor after = logits_of(model);
  for (Index i = 0; i < before.size(); ++i) EXPECT_NEAR(after.data()[i], before.data()[i], 1e-12);
  Drawn plain(config_of());
  EXPECT_FALSE(test::same(before, logits_of(plain)));
}

/// The largest logit of each query head, layer by layer, from the definition.
class Largest : public Observer {
 public:
  void attention(Index layer, const AttentionView& view) override {
    for (const OutputHead& output : view.mapping.outputs) {
      for (Index map = 0; map < view.mapping.maps; ++map) {
        add(layer, view, output.query[map], output.key[map]);
      }
    }
  }
  void hidden(Index /*layer*/, const Tensor& /*x*/) override {}

  std::map<std::pair<Index, Index>, double> of;  ///< layer, query head

 private:
  void add(Index layer, const AttentionView& view, Index query, Index key) {
    const Index batch = view.q.shape()[0], seq = view.q.shape()[1], width = view.q.shape()[3];
    double& largest = of.try_emplace({layer, query}, -1e300).first->second;
    for (Index b = 0; b < batch; ++b) {
      for (Index t = 0; t < seq; ++t) {
        for (Index s = 0; s <= t; ++s) {
          double dot = 0;
          for (Index i = 0; i < width; ++i) {
            dot += view.q.row((b * seq + t) * view.mapping.query_heads + query)[i] *
                   view.k.row((b * seq + s) * view.mapping.key_heads + key)[i];
          }
          largest = std::max(largest, dot * view.scale);
        }
      }
    }
  }
};

struct Shared {
  const char* kind;
  Index kv_heads;
  bool shared;  ///< several query heads read one key head
};

struct QkClipOf : testing::TestWithParam<Shared> {};

TEST_P(QkClipOf, brings_every_head_to_the_threshold_and_leaves_those_below_it) {
  ModelConfig config = config_of(GetParam().kind, GetParam().kv_heads);
  config.num_layers = 1;  // the input of a second layer would change
  Drawn model(config);
  const auto largest = [&](Observer& observer) {
    Tape tape(Tape::Mode::inference);
    model.observe(tape, kBatch, observer);
  };
  Largest before, after;
  largest(before);
  std::vector<double> sorted;
  for (const auto& [head, logit] : before.of) sorted.push_back(logit);
  std::ranges::sort(sorted);
  const double threshold = (sorted[sorted.size() / 2] + sorted[sorted.size() / 2 - 1]) / 2;
  ASSERT_GT(threshold, 0);
  Index above = 0;
  for (double logit : sorted) above += logit > threshold;

  QkClip clip(threshold);
  largest(clip);
  const std::string name = "model.layers.0.self_attn.";
  const Tensor& keys = model.parameters().find(name + "k_proj.weight")->value;
  const Tensor keys_before = keys.clone();
  EXPECT_NEAR(clip.seen().largest, sorted.back(), 1e-12);
  const QkClipped clipped = clip.clip(model.parameters());
  EXPECT_EQ(clipped.heads, above);
  EXPECT_NEAR(clipped.largest, sorted.back(), 1e-12);
  EXPECT_EQ(test::same(keys, keys_before), GetParam().shared);
  largest(after);
  for (const auto& [head, logit] : before.of) {
    const double expected = logit > threshold ? threshold : logit;
    EXPECT_NEAR(after.of.at(head), expected, 1e-12) << "query head " << head.second;
  }
  clip.reset();
  largest(clip);
  EXPECT_NEAR(clip.seen().largest, threshold, 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Attention, QkClipOf,
                         testing::Values(Shared{"softmax", 4, false}, Shared{"softmax", 2, true},
                                         Shared{"diff_v1", 4, false}, Shared{"diff_v1", 2, true},
                                         Shared{"diff_v2", 4, true}, Shared{"softmax1", 4, false},
                                         Shared{"gated", 4, false}),
                         [](const auto& each) {
                           return std::string(each.param.kind) +
                                  std::to_string(each.param.kv_heads);
                         });

TEST(QkClip, keeps_the_largest_of_several_batches_and_scales_queries_and_keys_alike) {
  ModelConfig config = config_of();
  Drawn model(config);
  const std::vector<std::int32_t> others{9, 10, 11, 0, 1, 3, 5, 7};
  QkClip clip(0.01), first(0.01), second(0.01);
  Tape tape(Tape::Mode::inference);
  model.observe(tape, kBatch, first);
  model.observe(tape, {others, 2, 4}, second);
  model.observe(tape, kBatch, clip);
  model.observe(tape, {others, 2, 4}, clip);
  EXPECT_EQ(clip.seen().largest, std::max(first.seen().largest, second.seen().largest));
  EXPECT_NE(first.seen().largest, second.seen().largest);
  const std::string name = "model.layers.1.self_attn.";
  const Tensor q = model.parameters().find(name + "q_proj.weight")->value.clone(),
               k = model.parameters().find(name + "k_proj.weight")->value.clone();
  EXPECT_EQ(clip.clip(model.parameters()).heads, 8) << "4 heads of 2 layers";
  const Tensor& q_now = model.parameters().find(name + "q_proj.weight")->value;
  const Tensor& k_now = model.parameters().find(name + "k_proj.weight")->value;
  for (Index i = 0; i < q.size(); ++i) {
    EXPECT_NEAR(q_now.data()[i] / q.data()[i], k_now.data()[i] / k.data()[i], 1e-12);
    EXPECT_LT(q_now.data()[i] / q.data()[i], 1);
  }
}

}  // namespace
}  // namespace difftape
