// Initial weights by preset and by overrides.
#include "layers/init.h"

#include "layers/language_model.h"
#include "tests/support/test.h"

namespace difftape {
namespace {

ModelConfig config_of(const std::string& kind, const InitConfig& init) {
  ModelConfig config;
  config.d_model = 96;
  config.num_layers = 2;
  config.num_heads = 4;
  config.d_ff = 160;
  config.vocab_size = 64;
  config.attention.kind = kind;
  config.attention.gate = Gate::elementwise;
  config.init = init;
  return config;
}

double deviation(const Tensor& x) {
  double squares = 0;
  for (real each : x.values()) squares += static_cast<double>(each) * static_cast<double>(each);
  return std::sqrt(squares / static_cast<double>(x.size()));
}

/// Expected standard deviations of initial weights.
struct Expected {
  double embedding, over_96, over_160, residual_over_96, residual_over_160;
};

double expected_of(const Expected& expected, const Parameter& p) {
  if (p.role == Role::embedding) return expected.embedding;
  if (p.role == Role::other) return 0.1;  // V1's lambda vectors
  if (p.name.ends_with("o_proj.weight")) return expected.residual_over_96;
  if (p.name.ends_with("down_proj.weight")) return expected.residual_over_160;
  return p.shape[1] == 160 ? expected.over_160 : expected.over_96;
}

void expect_drawn(const InitConfig& init, const Expected& expected) {
  for (const std::string kind : {"softmax", "diff_v1", "diff_v2"}) {
    LanguageModel model(config_of(kind, init));
    model.parameters().initialize(5);
    std::map<std::string, Index> seen;
    for (const Parameter& p : model.parameters()) {
      const std::string last = p.name.substr(p.name.rfind('.', p.name.rfind('.') - 1) + 1);
      if (p.role == Role::norm_weight) {
        for (real each : p.value.values()) EXPECT_EQ(each, 1) << p.name;
        continue;
      }
      ++seen[last];
      const double std = expected_of(expected, p), n = static_cast<double>(p.shape.size());
      EXPECT_NEAR(p.init.value, std, 1e-15) << kind << " " << p.name;
      EXPECT_NEAR(deviation(p.value) / std, 1, 5 / std::sqrt(2 * n)) << kind << " " << p.name;
    }
    EXPECT_EQ(seen["q_proj.weight"], 2) << kind;
    EXPECT_EQ(seen["gate_proj.weight"], 4) << kind << ": of attention and of the MLP";
    EXPECT_EQ(seen["embed_tokens.weight"], 1) << kind;
    EXPECT_EQ(seen["lm_head.weight"], 1) << kind;
    EXPECT_EQ(seen["lambda_proj.weight"], kind == "diff_v2" ? 2 : 0);
  }
}

TEST(Init, gpt2_scales_residual_projections_by_sqrt_2l) {
  expect_drawn({.preset = InitPreset::gpt2}, {0.02, 0.02, 0.02, 0.01, 0.01});
}

TEST(Init, torch_has_the_deviations_of_its_linear_and_embedding) {
  const double a = 1 / std::sqrt(3 * 96.0), b = 1 / std::sqrt(3 * 160.0);
  expect_drawn({.preset = InitPreset::torch}, {1, a, b, a, b});
}

TEST(Init, lecun_keeps_the_scale_of_its_inputs_and_scales_residual_projections) {
  const double a = 1 / std::sqrt(96.0), b = 1 / std::sqrt(160.0);
  expect_drawn({.preset = InitPreset::lecun}, {1, a, b, a / 2, b / 2});
  expect_drawn({}, {1, a, b, a / 2, b / 2});
}

TEST(Init, overrides_replace_values_of_the_preset) {
  const double a = 1 / std::sqrt(96.0), b = 1 / std::sqrt(160.0);
  const ProjectionStd fan_in{1, true};
  expect_drawn({.embedding_std = 1, .projection_std = fan_in}, {1, a, b, a / 2, b / 2});
  expect_drawn({.embedding_std = 1, .projection_std = fan_in, .residual_scaling = false},
               {1, a, b, a, b});
  expect_drawn({.preset = InitPreset::torch, .projection_std = ProjectionStd{0.3}},
               {1, 0.3, 0.3, 0.3, 0.3});
  expect_drawn(
      {.preset = InitPreset::torch, .embedding_std = 0.5, .residual_scaling = true},
      {0.5, a / std::sqrt(3.0), b / std::sqrt(3.0), a / std::sqrt(12.0), b / std::sqrt(12.0)});
}

TEST(Init, of_tied_embeddings_equals_the_embedding) {
  ModelConfig config = config_of("softmax", {.embedding_std = 0.5});
  config.tie_word_embeddings = true;
  LanguageModel model(config);
  EXPECT_EQ(model.parameters().find("lm_head.weight"), nullptr);
  EXPECT_EQ(model.parameters().find("model.embed_tokens.weight")->init.value, 0.5);
}

TEST(Init, leaves_shared_tensors_of_other_deviations_proportional) {
  LanguageModel gpt2(config_of("diff_v2", {.preset = InitPreset::gpt2})),
      larger(config_of("diff_v2",
                       {.preset = InitPreset::gpt2, .projection_std = ProjectionStd{0.04}}));
  for (LanguageModel* model : {&gpt2, &larger}) model->parameters().initialize(3);
  const std::string name = "model.layers.1.self_attn.q_proj.weight";
  const Tensor &a = gpt2.parameters().find(name)->value, &b = larger.parameters().find(name)->value;
  for (Index i = 0; i < a.size(); ++i) EXPECT_NEAR(b.data()[i], 2 * a.data()[i], 1e-7);
}

}  // namespace
}  // namespace difftape
