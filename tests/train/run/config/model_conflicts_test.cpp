// The fields of attention in every combination: each either trains or is an error that says why.
#include "train/run/config/reader.h"

#include <map>

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

class EveryKind : public testing::TestWithParam<std::string> {};

TEST_P(EveryKind, combines_with_every_field_or_says_why_not) {
  const Tensor x = test::random({1, 5, 6}, "x"), cotangent = test::random({1, 5, 6}, "cotangent");
  Index built = 0;
  for (const Combination& choice : test::all_combinations()) {
    const ModelConfig model = model_of(GetParam(), choice);
    const std::vector<ConfigConflict> errors = model_conflicts(model);
    for (const ConfigConflict& error : errors) {
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

TEST_P(EveryKind, refuses_exactly_the_words_that_decide_nothing) {
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

INSTANTIATE_TEST_SUITE_P(Fields, EveryKind, testing::ValuesIn(attention_kinds()),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace difftape::run
