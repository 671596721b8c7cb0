// The fields of attention in every combination: each either trains or is an error that says why.
#include "autograd/gradcheck/gradcheck.h"
#include "core/error.h"
#include "tests/layers/attention_layer.h"

namespace difftape {
namespace {

/// Calls f for every combination of words of the fields that take words.
template <class F>
void for_each_combination(const std::string& kind, F&& f) {
  ModelConfig model = test::layer_config(kind);
  AttentionConfig& a = model.attention;
  for (const std::string& pairing : field_words(kPairings)) {
    for (const std::string& lambda : field_words(kLambdas)) {
      for (const std::string& lambda_init : field_words(kLambdaInits)) {
        for (const std::string& normaliser : field_words(kNormalisers)) {
          for (const std::string& subln : field_words(kHeadNorms)) {
            for (const std::string& gate : field_words(kGates)) {
              a.pairing = pairing;
              a.lambda = lambda;
              a.lambda_init = lambda_init;
              a.normaliser = normaliser;
              a.subln = subln;
              a.gate = gate;
              f(model);
            }
          }
        }
      }
    }
  }
}

class EveryKind : public testing::TestWithParam<std::string> {};

TEST_P(EveryKind, combines_with_every_field_or_says_why_not) {
  const Tensor x = test::random({1, 5, 6}, "x"), cotangent = test::random({1, 5, 6}, "cotangent");
  Index built = 0, refused = 0;
  for_each_combination(GetParam(), [&](const ModelConfig& model) {
    const std::vector<FieldError> errors = attention_errors(model);
    for (const FieldError& error : errors) {
      EXPECT_GE(error.keys.size(), 2u);
      EXPECT_THAT(error.message, testing::ContainsRegex("write|Write|leave out"));
    }
    if (!errors.empty()) {
      ++refused;
      return;
    }
    ++built;
    test::Layer layer(model);
    EXPECT_TRUE(layer.backward(x, cotangent).all_finite());
    for (const Parameter& p : layer.parameters) {
      double total = 0;
      for (real g : p.grad.values()) total += std::abs(static_cast<double>(g));
      EXPECT_GT(total, 1e-9) << p.name << " has no gradient";
    }
  });
  EXPECT_EQ(built + refused, 3 * 5 * 3 * 4 * 3 * 4);
  // Without what makes it its kind it is softmax, by any two words for each of two other fields.
  const bool can_lose_its_name =
      GetParam() == "gated" || GetParam() == "sink" || GetParam() == "softmax1";
  const Index lambdas = GetParam() == "diff_v2"   ? 3 * (3 + 4)
                        : GetParam() == "diff_v1" ? 2 * 3 + 3
                                                  : 1;
  EXPECT_EQ(built, lambdas * 4 * 3 * 4 - (can_lose_its_name ? 2 * 2 : 0));
}

INSTANTIATE_TEST_SUITE_P(Fields, EveryKind, testing::ValuesIn(attention_kinds()),
                         [](const auto& kind) { return kind.param; });

TEST(Fields, words_and_kinds_that_do_not_exist_are_errors_that_list_those_that_do) {
  const auto message = [](const AttentionConfig& config) {
    try {
      attention_fields(config);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  AttentionConfig config;
  config.gate = "both";
  EXPECT_EQ(message(config),
            "model.attention.gate: 'both' is not one of preset, none, elementwise, head");
  config.kind = "diff_v3";
  EXPECT_THAT(message(config), testing::HasSubstr("'diff_v3' is not one of diff_v1, diff_v2"));
}

}  // namespace
}  // namespace difftape
