// Common mistakes about differential attention, one test each;
// tests/train/run/config/validate_test.cpp has those in configurations.

#include "autograd/gradcheck/gradcheck.h"
#include "core/attention/attention.h"
#include "layers/language_model.h"
#include "tests/layers/attention_layer.h"

namespace difftape {
namespace {

using test::Layer;
using test::layer_config;
using test::random;

TEST(CommonPitfalls, the_head_count_is_halved_once_by_v1_itself) {
  Layer v1(layer_config("diff_v1"));
  EXPECT_EQ(v1.attention.mapping().query_heads, 4);
  EXPECT_EQ(v1.attention.mapping().outputs.size(), 2u);
  EXPECT_EQ(v1.weight("q_proj.weight").shape(), (Shape{16, 6}));
  EXPECT_EQ(v1.weight("subln.weight").shape(), (Shape{8}));
}

TEST(CommonPitfalls, v2_pairs_neighbors_of_one_group_and_halves_are_an_ablation) {
  ModelConfig config = layer_config("diff_v2");
  const HeadMapping neighbors = Layer(config).attention.mapping();
  config.attention.pairing = Pairing::split_half;
  const HeadMapping halves = Layer(config).attention.mapping();
  for (Index i = 0; i < 4; ++i) {
    const OutputHead& near = neighbors.outputs[static_cast<size_t>(i)];
    const OutputHead& far = halves.outputs[static_cast<size_t>(i)];
    EXPECT_THAT(near.query, ElementsAre(2 * i, 2 * i + 1));
    EXPECT_EQ(near.key[0], near.key[1]);
    EXPECT_THAT(far.query, ElementsAre(i, i + 4));
    EXPECT_NE(far.key[0], far.key[1]) << "halves cross the groups";
  }
}

TEST(CommonPitfalls, the_maps_of_v1_read_different_key_heads_under_grouped_queries) {
  Layer v1(layer_config("diff_v1"));  // 4 query heads, 2 key heads
  for (const OutputHead& output : v1.attention.mapping().outputs) {
    EXPECT_THAT(output.key, ElementsAre(0, 1));
    EXPECT_THAT(output.value, ElementsAre(0, 0));
  }
}

/// The lambda rule of one layer.
struct Lambda {
  ParameterSet parameters;
  std::unique_ptr<LambdaRule> rule;
  explicit Lambda(const std::string& kind, Index layer = 0)
      : rule(make_lambda(fields_of(layer_config(kind).attention),
                         {parameters, "attn", {Component::attention, layer}}, {4, 6, 2, 0.02})) {
    parameters.initialize(1);
  }
  /// Returns lambda for x if parameters whose names end with `suffix` are `value`, and others 0.
  Tensor operator()(const Tensor& x, std::string_view suffix, real value) {
    for (Parameter& p : parameters) p.value.fill(p.name.ends_with(suffix) ? value : 0);
    Tape tape(Tape::Mode::inference);
    return (*rule)(tape.constant(x)).value();
  }
};

TEST(CommonPitfalls, lambda_of_v1_is_unbounded_and_lambda_of_v2_is_between_0_and_1) {
  const Tensor x = random({1, 9, 6}, "x");
  Lambda v1("diff_v1"), v2("diff_v2");
  EXPECT_NEAR(v1(x, "1", 1).item(), std::exp(4.0) - 1 + 0.2, 1e-12);
  EXPECT_NEAR(v1(x, "2", 1).item(), 1 - std::exp(4.0) + 0.2, 1e-12);
  for (real lambda : v2(x, "", 3).values()) {
    EXPECT_GT(lambda, 0);
    EXPECT_LT(lambda, 1);
  }
}

TEST(CommonPitfalls, lambda_init_counts_layers_from_0) {
  EXPECT_DOUBLE_EQ(lambda_init_of_layer(0), 0.2);
  EXPECT_DOUBLE_EQ(lambda_init_of_layer(1), 0.8 - 0.6 * std::exp(-0.3));
  const Tensor x = random({1, 3, 6}, "x");
  for (const Index layer : {0, 2}) {
    Lambda v1("diff_v1", layer);
    const double init = 0.8 - 0.6 * std::exp(-0.3 * static_cast<double>(layer));
    EXPECT_NEAR(v1(x, "", 0).item(), init, 1e-15) << "the vectors are 0";
    EXPECT_NEAR(v1.rule->head_factor(), 1 - init, 1e-15);
  }
}

TEST(CommonPitfalls, the_norm_of_v1_is_an_rms_norm_of_each_head_with_a_fixed_factor) {
  Layer v1(layer_config("diff_v1"));
  v1.weight("subln.weight").fill(1);
  Layer bare([] {
    ModelConfig config = layer_config("diff_v1");
    config.attention.subln = false;
    return config;
  }());
  Tensor eye = Tensor::zeros({6, 16});
  for (Index i = 0; i < 6; ++i) eye.row(i)[i] = 1;  // the output is the first 6 of head 0's 8
  v1.weight("o_proj.weight").copy_from(eye);
  Tensor wide = Tensor::zeros({6, 16});
  const Tensor x = random({1, 5, 6}, "x"), normed = v1.forward(x);
  std::vector<double> squares(5, 0);
  std::vector<Tensor> parts;
  for (Index part = 0; part < 2; ++part) {  // read all 8 features of head 0 of the bare layer
    wide.fill(0);
    for (Index i = 0; i < 4; ++i) wide.row(i)[4 * part + i] = 1;
    bare.weight("o_proj.weight").copy_from(wide);
    parts.push_back(bare.forward(x));
    for (Index t = 0; t < 5; ++t) {
      for (Index i = 0; i < 4; ++i) squares[t] += std::pow(parts.back().row(t)[i], 2);
    }
  }
  for (Index t = 0; t < 5; ++t) {
    const double rms = std::sqrt(squares[t] / 8 + 1e-5);
    for (Index i = 0; i < 4; ++i) {
      EXPECT_NEAR(normed.row(t)[i], (1 - 0.2) * parts[0].row(t)[i] / rms, 1e-12);
    }
  }
  Layer v2(layer_config("diff_v2"));
  EXPECT_EQ(v2.parameters.find("attn.subln.weight"), nullptr);
}

TEST(CommonPitfalls, the_norm_of_a_head_has_its_own_epsilon) {
  const Tensor x = random({1, 5, 6}, "x");
  ModelConfig config = layer_config("diff_v1");
  const Tensor y = Layer(config).forward(x);
  config.norm_eps = 0.5;
  EXPECT_TRUE(test::same(Layer(config).forward(x), y));
}

TEST(CommonPitfalls, the_gate_comes_after_the_norm_of_a_head) {
  const Tensor x = random({1, 5, 6}, "x");
  ModelConfig config = layer_config("gated");
  config.attention.subln = true;
  Layer gated(config);
  gated.weight("gate_proj.weight").fill(0);  // sigmoid(0): half of the norm's output
  config.attention.gate = Gate::none;
  const Tensor half = gated.forward(x), whole = Layer(config).forward(x);
  for (Index i = 0; i < half.size(); ++i) EXPECT_NEAR(2 * half.data()[i], whole.data()[i], 1e-12);
}

TEST(CommonPitfalls, it_is_a_difference_of_two_softmaxes_not_a_softmax_of_a_difference) {
  constexpr Index kSeq = 6;
  AttentionInputs in;
  in.q = random({1, kSeq, 2, 3}, "q", 2);
  in.k = random({1, kSeq, 1, 3}, "k", 2);
  in.v = Tensor::zeros({1, kSeq, 1, kSeq});
  for (Index s = 0; s < kSeq; ++s) in.v.row(s)[s] = 1;  // the output is the weights themselves
  in.lambda = Tensor::full({1, kSeq, 1}, real(0.6));
  in.mapping = HeadMapping::doubled(1, 1);
  in.scale = 1;
  const Tensor weights = attention_forward(in).out;
  real smallest = 0;
  for (Index t = 0; t < kSeq; ++t) {
    real total = 0;
    for (Index s = 0; s < kSeq; ++s) {
      total += weights.row(t)[s];
      smallest = std::min(smallest, weights.row(t)[s]);
    }
    EXPECT_NEAR(total, 0.4, 1e-15);
  }
  EXPECT_LT(smallest, -0.05) << "no softmax has negative weights";
}

TEST(CommonPitfalls, every_projection_of_every_kind_is_initialized_alike) {
  for (const std::string& kind : attention_kinds()) {
    ModelConfig config = layer_config(kind);
    config.init.preset = InitPreset::gpt2;
    const Layer layer(config);
    for (const Parameter& p : layer.parameters) {
      if (p.role != Role::projection) continue;
      const bool to_residual = p.name == "attn.o_proj.weight";
      EXPECT_EQ(p.init.kind, Init::Kind::normal) << kind << " " << p.name;
      EXPECT_EQ(p.init.value, to_residual ? 0.02 / std::sqrt(2.0) : 0.02) << kind << p.name;
    }
  }
}

TEST(CommonPitfalls, the_logits_of_both_maps_are_divided_by_sqrt_d) {
  AttentionInputs in;
  in.q = random({1, 8, 2, 4}, "q", 2);
  in.k = random({1, 8, 1, 4}, "k", 2);
  in.v = random({1, 8, 1, 4}, "v");
  in.scale = 0.5;  // 1 / sqrt(4)
  in.lambda = Tensor::full({1, 8, 1}, real(0.5));
  in.mapping = HeadMapping::doubled(1, 1);
  const Tensor stats = attention_forward(in).softmax_stats;
  for (Index map = 0; map < 2; ++map) {
    for (Index t = 0; t < 8; ++t) {
      double largest = -1e300;
      for (Index s = 0; s <= t; ++s) {
        double dot = 0;
        for (Index i = 0; i < 4; ++i) dot += in.q.row(2 * t + map)[i] * in.k.row(s)[i];
        largest = std::max(largest, dot / 2);
      }
      EXPECT_NEAR(stats.row(map * 8 + t)[0], largest, 1e-13) << "map " << map << " token " << t;
    }
  }
}

}  // namespace
}  // namespace difftape
