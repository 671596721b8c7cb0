// What keeps a model stable: soft cap of the logits, z-loss.
#include <gtest/gtest.h>

#include <cmath>

#include "layers/language_model.h"
#include "tests/layers/attention_layer.h"

namespace difftape {
namespace {

const std::vector<std::int32_t> kTokens{1, 2, 3, 4, 5, 6, 7, 8}, kTargets{2, 3, 4, 5, 6, 7, 8, 9};
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

TEST(Remedies, soft_capped_logits_are_those_of_the_definition_and_so_is_their_loss) {
  Drawn plain(config_of());
  ModelConfig config = config_of();
  config.logit_softcap = 0.7;
  Drawn capped(config);
  const Tensor a = logits_of(plain), b = logits_of(capped);
  double loss = 0;
  for (Index row = 0; row < 8; ++row) {
    double sum = 0;
    for (Index v = 0; v < 12; ++v) {
      EXPECT_NEAR(b.row(row)[v], 0.7 * std::tanh(a.row(row)[v] / 0.7), 1e-14);
      sum += std::exp(b.row(row)[v]);
    }
    loss += (std::log(sum) - b.row(row)[kTargets[static_cast<size_t>(row)]]) / 8;
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
  config.z_loss = 0.25;
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

}  // namespace
}  // namespace difftape
