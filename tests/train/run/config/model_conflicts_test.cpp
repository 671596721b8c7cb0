// Every combination of the attention fields either trains or is an error with a reason.
#include "train/run/config/reader.h"

#include "tests/layers/attention_layer.h"
#include "tests/layers/combinations.h"

namespace difftape::run {
namespace {

using test::Combination;

ModelConfig model_of(const std::string& kind, const Combination& choice) {
  ModelConfig model = test::layer_config(kind);
  model.attention = test::with(model.attention, choice);
  return model;
}

struct EveryKind : testing::TestWithParam<std::string> {};

TEST_P(EveryKind, combines_with_every_field_or_gives_the_reason) {
  const Tensor x = test::random({1, 5, 6}, "x"), cotangent = test::random({1, 5, 6}, "cotangent");
  Index built = 0;
  for (const Combination& choice : test::all_combinations()) {
    const ModelConfig model = model_of(GetParam(), choice);
    const std::vector<ModelConflict> errors = model_conflicts(model);
    for (const ModelConflict& error : errors) {
      EXPECT_GE(error.keys.size(), 2u);
      EXPECT_THAT(error.message, testing::ContainsRegex("write|Write|leave out"));
    }
    if (!errors.empty()) continue;
    ++built;
    test::Layer layer(model);
    EXPECT_TRUE(layer.backward(x, cotangent).all_finite());
    for (const Parameter& p : layer.parameters) {
      double total = 0;
      for (real g : p.grad.values()) total += std::abs(static_cast<double>(g));
      EXPECT_GT(total, 1e-9) << p.name << " has no gradient";
    }
  }
  EXPECT_GE(built, 40);
}

TEST_P(EveryKind, rejects_exactly_the_values_that_have_no_effect) {
  const Tensor x = test::random({1, 5, 6}, "x");
  std::map<Combination, Tensor> outputs;
  for (const Combination& choice : test::all_combinations())
    outputs[choice] = test::Layer(model_of(GetParam(), choice)).forward(x);
  const Combination sizes = test::sizes();
  const auto decides = [&](Combination choice, std::size_t field) {
    const Tensor& chosen = outputs.at(choice);
    for (choice[field] = 0; choice[field] < sizes[field]; ++choice[field])
      if (!test::same(outputs.at(choice), chosen)) return true;
    return false;
  };
  const AttentionKind baseline;
  const Tensor of_baseline = test::Layer(model_of(std::string(baseline.name()), {})).forward(x);
  for (const auto& [choice, output] : outputs) {
    bool makes_sense = GetParam() == baseline.name() || !test::same(output, of_baseline);
    for (std::size_t i = 0; i < choice.size(); ++i)
      if (choice[i] > 0 && !decides(choice, i)) makes_sense = false;
    EXPECT_EQ(model_conflicts(model_of(GetParam(), choice)).empty(), makes_sense)
        << testing::PrintToString(choice);
  }
}

/// The messages about a mixture of experts; the first key is what to change.
std::vector<std::string> moe_messages(const MoeConfig& moe) {
  ModelConfig model;
  model.moe = moe;
  std::vector<std::string> messages;
  for (const ModelConflict& conflict : model_conflicts(model))
    messages.push_back(conflict.keys[0] + ": " + conflict.message);
  return messages;
}

TEST(MoeConflicts, name_a_valid_setting) {
  const MoeConfig sound{.num_experts = 8, .moe_intermediate_size = 20};
  EXPECT_THAT(moe_messages({}), IsEmpty());
  EXPECT_THAT(moe_messages(sound), IsEmpty());
  const auto changed = [&](auto change) {
    MoeConfig moe = sound;
    change(moe);
    return moe_messages(moe);
  };
  EXPECT_THAT(changed([](auto& m) { m.moe_intermediate_size = 0; }),
              ElementsAre("model.moe.moe_intermediate_size: experts need a size; write "
                          "model.moe.moe_intermediate_size: 172, which has the active FLOPs of "
                          "d_ff 344"));
  EXPECT_THAT(changed([](auto& m) { m.num_experts_per_tok = 9; }),
              ElementsAre("model.moe.num_experts_per_tok: a token cannot choose 9 of 8 experts; "
                          "write at most 8"));
  EXPECT_THAT(changed([](auto& m) { m.num_experts_per_tok = 1; }), IsEmpty());
  EXPECT_THAT(changed([](auto& m) { m.num_experts_per_tok = 8, m.router_aux_loss_coef = 1; }),
              ElementsAre(HasSubstr("there is no load to balance; write fewer experts")));
  EXPECT_THAT(changed([](auto& m) { m.num_experts_per_tok = 8, m.router_bias_update_rate = 1; }),
              ElementsAre(HasSubstr("or leave out router_bias_update_rate")));
  EXPECT_THAT(moe_messages({.num_shared_experts = 1}),
              ElementsAre("model.moe.num_shared_experts: there are no experts; write "
                          "model.moe.num_experts: 8, or leave it out"));
  EXPECT_EQ(moe_messages({.num_experts_per_tok = 1,
                          .moe_intermediate_size = 4,
                          .scoring_func = RouterScore::sigmoid,
                          .norm_topk_prob = false,
                          .router_aux_loss_coef = 1,
                          .router_z_loss_coef = 1,
                          .router_bias_update_rate = 1})
                .size(),
            7u);
}

INSTANTIATE_TEST_SUITE_P(Fields, EveryKind, testing::ValuesIn(attention_kinds()),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace difftape::run
