// A model with a mixture of experts: dropless, exact, and the same for any number of threads.
#include "layers/moe.h"
#include "tests/support/test.h"

#include "core/gemm_backend.h"
#include "core/pool.h"
#include "layers/cost.h"
#include "layers/language_model.h"
#include "layers/load_balancer.h"
#include "tests/support/tensors.h"
#include "tests/support/threads.h"

namespace difftape {
namespace {

using test::same;
constexpr Index kRows = 2, kLength = 40;

ModelConfig moe_config(const MoeConfig& moe, const std::string& kind = "diff_v2") {
  return {.d_model = 24,
          .num_layers = 2,
          .num_heads = 4,
          .max_seq_len = kLength,
          .vocab_size = 50,
          .moe = moe,
          .attention = {.kind = kind}};
}
const MoeConfig kEight{.num_experts = 8, .num_experts_per_tok = 2, .moe_intermediate_size = 20};

std::vector<std::int32_t> ids_from(Index first, Index rows = kRows) {
  std::vector<std::int32_t> tokens;
  for (Index i = 0; i < rows * kLength; ++i)
    tokens.push_back(static_cast<std::int32_t>((first + i * i) % 50));
  return tokens;
}

struct SeenRouting : Observer {
  void attention(Index, const AttentionView&) override {}
  void hidden(Index, const Tensor&) override {}
  void routing(Index layer, const RoutingView& view) override {
    layers.push_back(layer);
    routings.push_back(view.routing);
    logits.push_back(view.logits);
  }
  std::vector<Index> layers;
  std::vector<Routing> routings;
  std::vector<Tensor> logits;
};

/// The loss of some tokens, and all gradients.
struct MoePass {
  Tensor loss;
  std::vector<Tensor> gradients;
};
MoePass pass_over(LanguageModel& model, Index first = 0, Observer* observer = nullptr,
                  Index rows = kRows) {
  for (Parameter& p : model.parameters()) p.zero_grad();
  Tape tape;
  const Var loss =
      model.loss(tape, {ids_from(first, rows), rows, kLength}, ids_from(first + 1, rows),
                 ActivationCheckpointing::none, nullptr, observer);
  tape.backward(loss);
  MoePass pass{loss.value(), {}};
  for (const Parameter& p : model.parameters()) pass.gradients.push_back(p.grad.clone());
  return pass;
}

TEST(Moe, has_the_names_of_deepseek_and_initial_values_of_an_mlp) {
  MoeConfig moe = kEight;
  moe.num_shared_experts = 2;
  moe.router_bias_update_rate = 0.001;
  const ModelConfig config = moe_config(moe);
  LanguageModel model(config);
  const auto parameter = [&](const std::string& name) {
    return model.parameters().find("model.layers.1.mlp." + name);
  };
  const auto shape = [&](const std::string& name) {
    const Parameter* p = parameter(name);
    return p == nullptr ? "none" : p->shape.str();
  };
  EXPECT_EQ(shape("gate.weight"), "(8, 24)");
  EXPECT_EQ(shape("gate.e_score_correction_bias"), "(8)");
  EXPECT_EQ(shape("experts.7.gate_proj.weight"), "(20, 24)");
  EXPECT_EQ(shape("experts.7.down_proj.weight"), "(24, 20)");
  EXPECT_EQ(shape("experts.8.down_proj.weight"), "none");
  EXPECT_EQ(shape("shared_experts.up_proj.weight"), "(40, 24)");
  EXPECT_EQ(shape("gate_proj.weight"), "none");
  ParameterSet dense;
  const Mlp mlp({dense, "mlp", {Component::mlp, 1}}, config, 20);
  for (const std::string part : {"gate_proj.weight", "down_proj.weight"})
    EXPECT_EQ(parameter("experts.7." + part)->init.value, dense.find("mlp." + part)->init.value);
  EXPECT_EQ(parameter("gate.weight")->init.value, dense.find("mlp.gate_proj.weight")->init.value);
}

TEST(Moe, every_token_has_k_experts_and_none_is_dropped) {
  LanguageModel model(moe_config(kEight));
  model.parameters().initialize(1);
  SeenRouting seen;
  pass_over(model, 0, &seen);
  EXPECT_THAT(seen.layers, ElementsAre(0, 1));
  for (const Routing& routing : seen.routings) {
    Index total = 0, most = 0;
    for (Index e = 0; e < 8; ++e) {
      total += routing.load(e);
      most = std::max(most, routing.load(e));
    }
    EXPECT_EQ(total, 2 * kRows * kLength);
    EXPECT_GT(most, total / 8) << "a capacity of the mean would drop some";
  }
}

TEST(Moe, no_token_meets_an_expert_that_is_not_its_own) {
  MoeConfig moe = kEight;
  moe.router_bias_update_rate = 0.001;
  LanguageModel model(moe_config(moe));
  model.parameters().initialize(1);
  for (const char* layer : {"0", "1"}) {
    const std::string mlp = fmt::format("model.layers.{}.mlp.", layer);
    model.parameters().find(mlp + "gate.e_score_correction_bias")->value.data()[3] = -2;
    for (const char* part : {"gate_proj", "up_proj", "down_proj"})
      model.parameters()
          .find(mlp + "experts.3." + part + ".weight")
          ->value.fill(std::numeric_limits<real>::quiet_NaN());
  }
  const MoePass pass = pass_over(model);
  EXPECT_TRUE(pass.loss.all_finite());
  size_t unused = 0, i = 0;
  for (const Parameter& p : model.parameters()) {
    const Tensor& gradient = pass.gradients[i++];
    EXPECT_TRUE(gradient.all_finite()) << p.name;
    if (p.name.find("experts.3.") == p.name.npos) continue;
    EXPECT_TRUE(same(gradient, Tensor::zeros(p.shape))) << p.name;
    ++unused;
  }
  EXPECT_EQ(unused, 6u);
}

TEST(Moe, is_bitwise_equal_for_any_number_of_threads) {
  constexpr Index kManyRows = 60;  // several blocks in every loop over tokens
  MoeConfig moe = kEight;
  moe.num_shared_experts = 1;
  moe.router_aux_loss_coef = 0.1;
  moe.router_z_loss_coef = 0.01;
  for (const RouterScore score : {RouterScore::softmax, RouterScore::sigmoid}) {
    moe.scoring_func = score;
    LanguageModel model(moe_config(moe));
    model.parameters().initialize(1);
    const auto with = [&](int threads) {
      const test::Threads scope(threads);
      return pass_over(model, 0, nullptr, kManyRows);
    };
    const MoePass one = with(1);
    for (const int threads : {2, 3, 7}) {
      const MoePass many = with(threads);
      EXPECT_TRUE(same(one.loss, many.loss));
      for (size_t i = 0; i < one.gradients.size(); ++i)
        EXPECT_TRUE(same(one.gradients[i], many.gradients[i])) << threads << " threads, " << i;
    }
  }
}

TEST(Moe, takes_nothing_from_the_system_when_loads_change) {
  pool::trim();  // of blocks of other tests
  LanguageModel model(moe_config(kEight));
  model.parameters().initialize(1);
  pass_over(model, 0);
  pass_over(model, 1);
  const auto before = pool::stats().system_allocations;
  for (const Index first : {2, 3, 4, 5}) pass_over(model, first);
  EXPECT_EQ(pool::stats().system_allocations, before);
  SeenRouting seen;
  for (const Index first : {2, 3}) pass_over(model, first, &seen);
  EXPECT_NE(seen.routings[0].starts, seen.routings[2].starts);
}

TEST(Moe, the_loss_contains_the_losses_of_all_routers_and_the_terms_name_them) {
  for (const RouterScore score : {RouterScore::softmax, RouterScore::sigmoid}) {
    MoeConfig moe = kEight;
    moe.scoring_func = score;
    LanguageModel plain(moe_config(moe));
    moe.router_aux_loss_coef = 0.5;
    moe.router_z_loss_coef = 0.25;
    LanguageModel model(moe_config(moe));
    for (LanguageModel* each : {&plain, &model}) each->parameters().initialize(1);
    SeenRouting seen;
    LossTerms terms;
    Tape tape;
    const Var loss = model.loss(tape, {ids_from(0), kRows, kLength}, ids_from(1),
                                ActivationCheckpointing::none, &terms, &seen);
    double expected = 0;
    for (size_t layer = 0; layer < 2; ++layer) {
      const Var logits = tape.constant(seen.logits[layer]);
      expected += static_cast<double>(
          router_loss(logits, score, seen.routings[layer], {0.5, 0.25}).value().item());
    }
    EXPECT_GT(expected, 2 * 0.5 * 2) << "each layer's balancing loss is at least about k";
    EXPECT_NEAR(terms.router_loss, expected, 1e-5);
    EXPECT_NEAR(loss.value().item(), pass_over(plain).loss.item() + expected, 1e-5);
    EXPECT_NEAR(terms.cross_entropy, pass_over(plain).loss.item(), 1e-5);
  }
}

TEST(Moe, the_router_is_not_rounded_to_bfloat16) {
  if (!unsupported_reason(Precision::bf16_emulated).empty()) GTEST_SKIP() << "f32 only";
  const ModelConfig config = moe_config(kEight);
  ParameterSet parameters;
  const Moe layer({parameters, "mlp", {Component::mlp, 0}}, config);
  parameters.initialize(1);
  const Tensor x = test::random({kRows, kLength, 24}, "x");
  SeenRouting seen;
  std::vector<Tensor> y;
  for (const Precision precision : {Precision::full, Precision::bf16_emulated}) {
    Tape tape(Tape::Mode::inference, precision);
    y.push_back(layer(tape.constant(x), tape.constant(x), {.observer = &seen}, nullptr).value());
  }
  EXPECT_TRUE(same(seen.logits[0], seen.logits[1]));
  EXPECT_FALSE(same(y[0], y[1])) << "the experts are rounded";
}

TEST(Moe, generates_token_by_token_what_it_computes_at_once) {
  MoeConfig moe = kEight;
  moe.num_shared_experts = 1;
  for (const char* kind : {"softmax", "diff_v1", "diff_v2"}) {
    LanguageModel model(moe_config(moe, kind));
    model.parameters().initialize(1);
    const std::vector<std::int32_t> ids{3, 1, 4, 1, 5, 9, 2, 6};
    Tape tape(Tape::Mode::inference);
    const Tensor logits = model.logits(tape, {ids, 1, 8}).value();
    ModelKvCache cache = model.make_cache(1, 8);
    for (Index i = 0; i < 8; ++i) {
      const Tensor next =
          model.next_logits(tape, {std::span(ids).subspan(i, 1), 1, 1}, cache).value();
      for (Index v = 0; v < 50; ++v)
        EXPECT_NEAR(next.row(0)[v], logits.row(i)[v], sizeof(real) == 8 ? 1e-12 : 1e-4);
    }
  }
}

TEST(Moe, is_counted_by_active_and_total_parameters) {
  MoeConfig moe = kEight;
  moe.num_shared_experts = 1;
  const ModelCost cost = model_cost(moe_config(moe, "softmax"), 16);
  const Index expert = 3 * 24 * 20, router = 8 * 24;
  EXPECT_EQ(cost.total_parameters - cost.active_parameters, 2 * 6 * expert);
  const ModelCost dense = model_cost(moe_config({}, "softmax"), 16);
  const Index mlp = 3 * 24 * dense.mlp_width;
  EXPECT_DOUBLE_EQ(cost.train_flops_per_token - dense.train_flops_per_token,
                   6.0 * 2 * (3 * expert + router - mlp));
  EXPECT_EQ(dense.active_parameters, dense.total_parameters);
  EXPECT_EQ(cost.mlp_width, 20);
}

TEST(Moe, match_params_shrinks_the_experts) {
  ModelConfig config = moe_config(kEight);
  config.moe.num_experts = 4;
  config.moe.moe_intermediate_size = 200;
  config.match_params = true;
  const LanguageModel matched(config);
  const Index width = matched.config().moe.moe_intermediate_size;
  EXPECT_LT(width, 200);
  EXPECT_EQ(width % 4, 0);
  config.attention.kind = "softmax";
  const Index wanted = LanguageModel(config).parameters().count();
  EXPECT_NEAR(matched.parameters().count(), wanted, 4 * 2 * 3 * 24 * 2);
}

TEST(LoadBalancer, moves_the_bias_of_each_expert_by_the_rate_towards_the_mean_load) {
  MoeConfig moe = kEight;
  moe.router_bias_update_rate = 0.125;
  LanguageModel model(moe_config(moe));
  model.parameters().initialize(1);
  LoadBalancer balancer(moe.router_bias_update_rate);
  SeenRouting seen;
  LoadBalancer chained(moe.router_bias_update_rate, &seen);
  for (const Index first : {0, 1}) {
    pass_over(model, first, &balancer);
    balancer.end_pass();
    pass_over(model, first, &chained);
  }
  balancer.update(model.parameters());
  ASSERT_EQ(seen.routings.size(), 4u);
  for (size_t layer = 0; layer < 2; ++layer) {
    const Parameter& bias = *model.parameters().find(
        fmt::format("model.layers.{}.mlp.gate.e_score_correction_bias", layer));
    int moved = 0;
    for (Index e = 0; e < 8; ++e) {
      const Index load = seen.routings[layer].load(e) + seen.routings[layer + 2].load(e);
      EXPECT_EQ(balancer.loads()[layer * 8 + e], load);
      const Index mean = 2 * 2 * kRows * kLength / 8;
      const double expected = load < mean ? 0.125 : load > mean ? -0.125 : 0;
      EXPECT_EQ(bias.value.data()[e], static_cast<real>(expected));
      moved += expected != 0;
    }
    EXPECT_GT(moved, 4);
  }
}

TEST(LoadBalancer, counts_a_layer_once_that_checkpointing_runs_twice) {
  LanguageModel model(moe_config(kEight));
  model.parameters().initialize(1);
  LoadBalancer balancer(0.1);
  Tape tape;
  const auto tokens = ids_from(0);
  tape.backward(model.loss(tape, {tokens, kRows, kLength}, ids_from(1),
                           ActivationCheckpointing::blocks, nullptr, &balancer));
  balancer.end_pass();
  Index total = 0;
  for (const Index load : balancer.loads()) total += load;
  EXPECT_EQ(total, 2 * 2 * kRows * kLength);
}

}  // namespace
}  // namespace difftape
