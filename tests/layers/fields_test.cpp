// The fields of attention in every combination: each either trains or is an error that says why.
#include <map>

#include "autograd/gradcheck/gradcheck.h"
#include "core/error.h"
#include "layers/model_config.h"
#include "tests/layers/attention_layer.h"
#include "tests/layers/combinations.h"

namespace difftape {
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
    const std::vector<ConfigConflict> errors = attention_errors(model);
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
  for (const Combination& choice : test::all_combinations()) {
    outputs[choice] = test::Layer(model_of(GetParam(), choice)).forward(x);
  }
  const Combination sizes = test::sizes();
  const auto decides = [&](Combination choice, std::size_t field) {
    const Tensor& chosen = outputs.at(choice);
    for (choice[field] = 0; choice[field] < sizes[field]; ++choice[field]) {
      if (!test::same(outputs.at(choice), chosen)) return true;
    }
    return false;
  };
  const AttentionKind baseline;
  const Tensor of_baseline = test::Layer(model_of(std::string(baseline.name()), {})).forward(x);
  for (const auto& [choice, output] : outputs) {
    bool makes_sense = GetParam() == baseline.name() || !test::same(output, of_baseline);
    for (std::size_t i = 0; i < choice.size(); ++i) {
      if (choice[i] > 0 && !decides(choice, i)) makes_sense = false;
    }
    EXPECT_EQ(attention_errors(model_of(GetParam(), choice)).empty(), makes_sense)
        << testing::PrintToString(choice);
  }
}

INSTANTIATE_TEST_SUITE_P(Fields, EveryKind, testing::ValuesIn(attention_kinds()),
                         [](const auto& kind) { return kind.param; });

TEST(Kinds, that_do_not_exist_are_errors_that_list_those_that_do) {
  EXPECT_THAT([] { AttentionKind("diff_v3"); },
              testing::ThrowsMessage<ConfigError>(testing::HasSubstr(
                  "model.attention.kind: 'diff_v3' is not one of diff_v1, diff_v2")));
  EXPECT_FALSE(from_string<AttentionKind>("diff_v3"));
  EXPECT_EQ(from_string<AttentionKind>("diff_v2"), AttentionKind("diff_v2"));
}

TEST(Kinds, are_in_alphabetical_order_with_their_sources_and_differ_in_their_fields) {
  const std::vector<std::string> kinds = attention_kinds();
  EXPECT_TRUE(std::is_sorted(kinds.begin(), kinds.end()));
  for (const std::string& kind : kinds) {
    EXPECT_NE(AttentionKind(kind).entry().source, "");
    for (const std::string& other : kinds) {
      EXPECT_EQ(AttentionKind(kind).fields() == AttentionKind(other).fields(), kind == other);
    }
  }
}

TEST(Kinds, are_registered_under_a_word_that_is_free_and_with_a_source) {
  const auto refused = [](const std::string& name, const std::string& source) {
    try {
      register_attention({.name = name, .source = source});
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  EXPECT_EQ(refused("softmax", "me"),
            "register_attention: the kind 'softmax' is there; choose another name");
  EXPECT_THAT(refused("My kind", "me"), testing::HasSubstr("lower-case letters"));
  EXPECT_THAT(refused("", "me"), testing::HasSubstr("lower-case letters"));
  EXPECT_THAT(refused("mine", ""), testing::HasSubstr("needs a source"));
  EXPECT_FALSE(from_string<AttentionKind>("mine"));
}

TEST(Fields, have_words_that_name_them) {
  EXPECT_EQ(names<Gate>(), (std::vector<std::string>{"none", "elementwise", "head"}));
  EXPECT_EQ(to_string(LambdaKind::one), "none");
  EXPECT_EQ(from_string<Gate>("head"), Gate::head);
  EXPECT_FALSE(from_string<Gate>("both"));
}

TEST(Fields, of_equal_layers_are_equal_whatever_is_written) {
  AttentionConfig explicit_words{.kind = "diff_v2", .lambda = LambdaKind::sigmoid};
  explicit_words.lambda_init_value = 0.5;  // of no use without a constant lambda_init
  EXPECT_EQ(fields_of(explicit_words), fields_of({.kind = "diff_v2"}));
  EXPECT_NE(fields_of({.kind = "diff_v2", .qk_norm = true}), fields_of({.kind = "diff_v2"}));
  const AttentionConfig raw{.kind = "diff_v2", .lambda = LambdaKind::raw, .sliding_window = 7};
  EXPECT_EQ(fields_of(plain_kind("diff_v2", raw)),
            fields_of({.kind = "diff_v2", .sliding_window = 7}));
}

}  // namespace
}  // namespace difftape
