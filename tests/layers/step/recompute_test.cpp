// Recomputed activations give bitwise equal results.
#include "core/pool.h"
#include "layers/language_model.h"
#include "tests/support/tensors.h"
#include "tests/support/test.h"
#include "train/app/gradcheck/cases.h"

namespace difftape {
namespace {

constexpr Index kBatch = 2, kSeq = 70;  // more than one block of queries

ModelConfig small(const AttentionConfig& attention) {
  ModelConfig config;
  config.d_model = 32;
  config.num_layers = 3;
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.d_ff = 40;
  config.max_seq_len = kSeq;
  config.vocab_size = 50;
  config.attention = attention;
  return config;
}

std::vector<std::int32_t> some_tokens(Index first) {
  std::vector<std::int32_t> tokens;
  for (Index i = 0; i < kBatch * kSeq; ++i) {
    tokens.push_back((first + i * i) % 50);
  }
  return tokens;
}

/// Losses of two micro-batches, and the sum of their gradients, in the order of the parameters.
struct Gradients {
  std::vector<Tensor> losses, of_parameters;
  std::vector<std::string> ops;
};
Gradients gradients(const ModelConfig& config, ActivationCheckpointing recompute,
                    const DocumentOffsets& documents = nullptr) {
  LanguageModel model(config);
  model.parameters().initialize(1);
  Gradients result;
  for (const Index micro : {0, 1}) {
    const std::vector<std::int32_t> tokens = some_tokens(micro), targets = some_tokens(micro + 1);
    Tape tape;
    const Var loss = model.loss(tape, {tokens, kBatch, kSeq, documents}, targets, recompute);
    result.ops = tape.ops();
    result.losses.push_back(loss.value());
    tape.backward(loss, Tensor::scalar(real(0.5)));
  }
  for (const Parameter& p : model.parameters()) result.of_parameters.push_back(p.grad.clone());
  return result;
}

void expect_same(const Gradients& kept, const Gradients& recomputed, const std::string& what) {
  for (size_t i : {0u, 1u}) EXPECT_TRUE(test::same(kept.losses[i], recomputed.losses[i])) << what;
  ASSERT_EQ(kept.of_parameters.size(), recomputed.of_parameters.size());
  for (size_t i = 0; i < kept.of_parameters.size(); ++i) {
    const auto values = kept.of_parameters[i].values();
    EXPECT_TRUE(test::same(kept.of_parameters[i], recomputed.of_parameters[i])) << what << i;
    EXPECT_TRUE(std::any_of(values.begin(), values.end(), [](real g) { return g != 0; }))
        << what << " parameter " << i << " has no gradient that could differ";
  }
}

TEST(ActivationCheckpointing, of_blocks_gives_bitwise_equal_gradients_for_every_attention) {
  for (const app::AttentionVariant& variant : app::attention_variants()) {
    ModelConfig config = small(variant.attention);
    expect_same(gradients(config, ActivationCheckpointing::none),
                gradients(config, ActivationCheckpointing::blocks), variant.name);
    config.tie_word_embeddings = config.attention.qk_norm = true;
    config.attention.sliding_window = 40;
    const DocumentOffsets documents = app::packed_documents(kBatch, kSeq);
    expect_same(gradients(config, ActivationCheckpointing::none, documents),
                gradients(config, ActivationCheckpointing::blocks, documents),
                variant.name + " packed");
  }
}

TEST(ActivationCheckpointing, of_blocks_gives_bitwise_equal_gradients_for_every_mixture) {
  for (const app::MoeVariant& variant : app::moe_variants()) {
    ModelConfig config = small({});
    config.moe = variant.moe;
    config.moe.router_bias_update_rate = 0;  // the bias has no gradient
    expect_same(gradients(config, ActivationCheckpointing::none),
                gradients(config, ActivationCheckpointing::blocks), variant.name);
  }
}

TEST(ActivationCheckpointing, of_blocks_records_one_op_per_block) {
  const Gradients result = gradients(small({}), ActivationCheckpointing::blocks);
  EXPECT_THAT(result.ops, ElementsAre("embedding", "checkpointed", "checkpointed", "checkpointed",
                                      "rms_norm", "cross_entropy"));
}

TEST(ActivationCheckpointing, of_blocks_keeps_one_tensor_per_block) {
  LanguageModel model(small({}));
  model.parameters().initialize(1);
  const std::vector<std::int32_t> tokens = some_tokens(0);
  const auto held = [&](ActivationCheckpointing recompute) {
    const size_t before = pool::stats().bytes_in_use;
    Tape tape;
    const Var loss = model.loss(tape, {tokens, kBatch, kSeq}, tokens, recompute);
    return pool::stats().bytes_in_use - before;
  };
  held(ActivationCheckpointing::none);  // the rotary table is made when it is first used
  // Inputs of the blocks and of the last norm, 1/rms; dhidden and dweight of the loss.
  const size_t numbers = kBatch * kSeq * ((3 + 1 + 1) * 32 + 1) + 50 * 32;
  EXPECT_LE(held(ActivationCheckpointing::blocks), numbers * sizeof(real) + 1024);
  EXPECT_GT(held(ActivationCheckpointing::none), 4 * held(ActivationCheckpointing::blocks));
}

TEST(ActivationCheckpointing, an_error_names_the_layer_in_forward_and_when_a_block_runs_again) {
  LanguageModel model(small({}));
  model.parameters().initialize(1);
  const std::vector<std::int32_t> long_row(kSeq + 1, 1), tokens = some_tokens(0);
  const auto names = [](const char* layer) {
    return ThrowsMessage<ShapeError>(EndsWith(std::string("\nin ") + layer));
  };
  EXPECT_THAT(
      [&] {
        Tape tape;
        model.loss(tape, {long_row, 1, kSeq + 1}, long_row, ActivationCheckpointing::blocks);
      },
      names("model.layers.0.self_attn"));
  Tape tape;
  const Var loss =
      model.loss(tape, {tokens, kBatch, kSeq}, tokens, ActivationCheckpointing::blocks);
  model.parameters().find("model.layers.1.mlp.up_proj.weight")->value = Tensor::zeros({40, 31});
  EXPECT_THAT([&] { tape.backward(loss); }, names("model.layers.1.mlp.up_proj"));
}

}  // namespace
}  // namespace difftape
