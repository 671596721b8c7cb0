// Models whose last layers share keys and values (YOCO): structure, prefill, gradients.
#include "layers/attention/qk_clip.h"
#include "layers/cost.h"
#include "layers/language_model.h"
#include "tests/layers/attention_layer.h"
#include "tests/support/threads.h"

namespace difftape {
namespace {

constexpr Index kRows = 2, kRowLength = 70;  // more than one block of queries

/// Two layers with a window of 5, then three of a cross-decoder.
ModelConfig yoco(const ModelConfig& layer) {
  ModelConfig config = layer;
  config.num_layers = 5;
  config.yoco_self_layers = 2;
  config.attention.sliding_window = 5;
  config.vocab_size = 11;
  config.d_ff = 8;
  return config;
}

std::unique_ptr<LanguageModel> yoco_model(const ModelConfig& config) {
  auto model = std::make_unique<LanguageModel>(config);
  model->parameters().initialize(1);
  for (Parameter& p : model->parameters()) p.value.copy_from(test::random(p.shape, p.name, 0.4));
  return model;
}

std::vector<std::int32_t> yoco_tokens() {
  std::vector<std::int32_t> tokens;
  for (Index i = 0; i < kRows * kRowLength; ++i)
    tokens.push_back(static_cast<std::int32_t>(i * i % 11));
  return tokens;
}

struct YocoViews : Observer {
  void attention(Index /*layer*/, const AttentionView& view) override { all.push_back(view); }
  void hidden(Index /*layer*/, const Tensor& x) override { states.push_back(x); }
  std::vector<AttentionView> all;
  std::vector<Tensor> states;
};

TEST(Yoco, declares_one_projection_of_keys_and_values_for_the_cross_decoder) {
  ModelConfig config = yoco(test::layer_config("diff_v1"));
  config.attention.qk_norm = true;
  std::set<std::string> keys;
  LanguageModel model(config);
  for (const Parameter& p : model.parameters()) {
    for (const char* part : {"k_proj", "v_proj", "k_norm"})
      if (p.name.find(part) != std::string::npos) keys.insert(p.name);
  }
  std::set<std::string> expected;
  for (const char* part : {"k_proj", "v_proj", "k_norm"}) {
    for (const char* owner : {"layers.0.self_attn", "layers.1.self_attn", "shared_kv"})
      expected.insert(fmt::format("model.{}.{}.weight", owner, part));
  }
  EXPECT_EQ(keys, expected);
  EXPECT_NE(model.parameters().find("model.shared_kv.norm.weight"), nullptr);
}

TEST(Yoco, shares_keys_and_values_of_the_normed_output_of_the_self_decoder) {
  for (const ModelConfig& layer : test::variants()) {
    const auto model = yoco_model(yoco(layer));
    const std::vector<std::int32_t> ids = yoco_tokens();
    Tape tape(Tape::Mode::inference);
    YocoViews seen;
    model->observe(tape, {ids, kRows, kRowLength}, seen);
    ASSERT_EQ(seen.all.size(), 5u);
    const auto weight = [&](const char* name) {
      return tape.parameter(
          *model->parameters().find(fmt::format("model.shared_kv.{}.weight", name)));
    };
    const Var normed = rms_norm(tape.constant(seen.states[1]), weight("norm"), layer.norm_eps);
    const Var values = linear(normed, weight("v_proj"));
    for (Index i = 0; i < 5; ++i) {
      const AttentionView& view = seen.all[i];
      EXPECT_EQ(view.visible.sliding_window, i < 2 ? 5 : 0);
      EXPECT_EQ(test::same(view.k, seen.all[2].k), i >= 2) << i;
      EXPECT_EQ(test::same(view.v, values.value().reshaped(view.v.shape())), i >= 2) << i;
    }
  }
}

TEST(Yoco, lets_the_last_token_read_the_first_one_through_the_cross_decoder_alone) {
  const auto model = yoco_model(yoco(test::layer_config("diff_v2")));
  std::vector<std::int32_t> ids = yoco_tokens();
  const auto states = [&] {
    Tape tape(Tape::Mode::inference);
    YocoViews seen;
    model->observe(tape, {ids, kRows, kRowLength}, seen);
    std::vector<Tensor> last;
    for (const Tensor& x : seen.states) {
      last.push_back(Tensor::empty({6}));
      std::copy_n(x.row(kRowLength - 1), 6, last.back().data());
    }
    return last;
  };
  const std::vector<Tensor> before = states();
  ids[0] = (ids[0] + 1) % 11;
  const std::vector<Tensor> after = states();
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(test::same(before[i], after[i]), i < 2) << i;
}

TEST(Yoco, prefill_runs_the_cross_decoder_for_the_last_token_only) {
  const auto model = yoco_model(yoco(test::layer_config("diff_v2")));
  const std::vector<std::int32_t> ids = yoco_tokens();
  ModelKvCache cache = model->make_cache(kRows, kRowLength);
  EXPECT_EQ(cache.layers.size(), 3u) << "two layers, and one for all others";
  Tape tape(Tape::Mode::inference);
  std::map<std::string, Index> rows;
  tape.set_events({.on_value = [&](const char* op, std::string_view scope, const Tensor& x) {
    if (std::string_view(op) == "linear") rows[std::string(scope)] = x.shape()[1];
  }});
  model->next_logits(tape, {ids, kRows, kRowLength}, cache);
  EXPECT_EQ(cache.length(), kRowLength);
  EXPECT_EQ(rows.at("model.layers.1.self_attn.q_proj"), kRowLength);
  EXPECT_EQ(rows.at("model.shared_kv.k_proj"), kRowLength);
  for (const Index layer : {2, 3, 4}) {
    for (const char* part : {"self_attn.q_proj", "self_attn.o_proj", "mlp.up_proj"})
      EXPECT_EQ(rows.at(fmt::format("model.layers.{}.{}", layer, part)), 1) << part;
  }
}

std::vector<Tensor> yoco_gradients(LanguageModel& model, ActivationCheckpointing recompute) {
  const std::vector<std::int32_t> ids = yoco_tokens();
  std::vector<std::int32_t> targets(ids.begin() + 1, ids.end());
  targets.push_back(0);
  for (Parameter& p : model.parameters()) p.zero_grad();
  Tape tape;
  tape.backward(model.loss(tape, {ids, kRows, kRowLength}, targets, recompute));
  std::vector<Tensor> all;
  for (const Parameter& p : model.parameters()) all.push_back(p.grad.clone());
  return all;
}

TEST(Yoco, gradients_have_the_same_bits_for_any_threads_and_if_recomputed) {
  for (const ModelConfig& layer : test::variants()) {
    const auto model = yoco_model(yoco(layer));
    const std::vector<Tensor> expected = yoco_gradients(*model, ActivationCheckpointing::none);
    for (const int threads : {1, 2, 3}) {
      const test::Threads scope(threads);
      for (const auto& [name, recompute] : kNames<ActivationCheckpointing>) {
        const std::vector<Tensor> found = yoco_gradients(*model, recompute);
        for (size_t i = 0; i < found.size(); ++i)
          EXPECT_TRUE(test::same(found[i], expected[i])) << model->parameters()[i].name << name;
      }
    }
  }
}

TEST(Yoco, qk_clip_leaves_shared_keys_and_brings_the_largest_logit_to_the_threshold) {
  ModelConfig config = yoco(test::layer_config("softmax"));
  config.num_layers = 3;
  config.num_kv_heads = 4;  // no head shares keys within a layer
  const auto model = yoco_model(config);
  const std::vector<std::int32_t> ids = yoco_tokens();
  const auto largest_logit = [&] {
    Tape tape(Tape::Mode::inference);
    YocoViews seen;
    model->observe(tape, {ids, kRows, kRowLength}, seen);
    const AttentionView& cross = seen.all[2];
    return std::ranges::max(largest_logits(cross.mapping, cross.softmax_stats));
  };
  const Tensor keys = model->parameters().find("model.shared_kv.k_proj.weight")->value.clone();
  const double largest = largest_logit();
  QkClip clip(largest / 4);
  Tape tape(Tape::Mode::inference);
  model->observe(tape, {ids, kRows, kRowLength}, clip);
  // The layers before keep their weights, so that the last one has the inputs that were observed.
  for (QkClip::Layer& layer : clip.layers().first(2)) std::ranges::fill(layer.largest, real(0));
  EXPECT_GT(clip.clip(model->parameters()).heads, 0);
  EXPECT_NEAR(largest_logit(), largest / 4, 1e-5 * largest);
  EXPECT_TRUE(test::same(model->parameters().find("model.shared_kv.k_proj.weight")->value, keys));
}

TEST(Yoco, cost_counts_one_cache_and_the_cross_decoder_once_per_prompt) {
  ModelConfig plain = test::layer_config("softmax");
  plain.num_layers = 4;
  plain.vocab_size = 11;
  plain.d_ff = 8;
  ModelConfig config = plain;
  config.yoco_self_layers = 1;
  config.attention.sliding_window = 8;
  const Index seq = 64, c = 6, q = 16, kv = 8;
  const Index block = 2 * c * q + 3 * c * 8, keys = 2 * c * kv, head = 11 * c;
  // A query sees 8 - 8 * 8 / (2 * 64) keys on average with the window, 32 without.
  const double windowed = 2.0 * 2 * q * 7.5, full = 2.0 * 2 * q * 32;
  const ModelCost cost = model_cost(config, seq), of_plain = model_cost(plain, seq);
  EXPECT_EQ(cost.kv_cache_per_token, 2 * 2 * kv);
  EXPECT_EQ(of_plain.kv_cache_per_token, 4 * 2 * kv);
  EXPECT_EQ(cost.total_parameters, of_plain.total_parameters - 2 * keys + c);
  EXPECT_DOUBLE_EQ(cost.attention_flops_per_token, 3 * (windowed + 3 * full));
  EXPECT_DOUBLE_EQ(cost.prefill_flops, 2.0 * (seq * (block + 2 * keys) + 3 * block + head) +
                                           seq * windowed + 3 * 2.0 * 2 * q * seq);
  EXPECT_DOUBLE_EQ(of_plain.prefill_flops,
                   2.0 * (seq * 4 * (block + keys) + head) + seq * 4 * full);
}

}  // namespace
}  // namespace difftape
