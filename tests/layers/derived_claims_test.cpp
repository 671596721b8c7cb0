// Statements that the V2 article derives rather than measures, as assertions without seeds.
#include "core/attention/attention.h"
#include "core/random.h"
#include "layers/cost.h"
#include "tests/support/test.h"

namespace difftape {
namespace {

/// Returns the gain of a per-head RMSNorm on uniform attention over n keys. Values have RMS 1 and
/// are independent or equal for all tokens.
double gain_of_norm(Index n, bool independent) {
  constexpr Index kSize = 64;
  const RandomStream random(1, "values");
  AttentionInputs in{.mapping = HeadMapping::standard(1, 1),
                     .q = Tensor::zeros({1, n, 1, 8}),
                     .k = Tensor::zeros({1, n, 1, 8}),
                     .v = Tensor::zeros({1, n, 1, kSize}),
                     .scale = 1};
  for (Index i = 0; i < n * kSize; ++i) {
    in.v.data()[i] =
        static_cast<real>(random.normal(static_cast<std::uint64_t>(independent ? i : i % kSize)));
  }
  const AttentionOutputs found = attention_forward(in);
  const real* last = found.out.row(n - 1);
  double squares = 0;
  for (Index d = 0; d < kSize; ++d) squares += static_cast<double>(last[d] * last[d]);
  return 1 / std::sqrt(squares / kSize);
}

TEST(V2Article, the_norm_of_v1_enlarges_by_up_to_the_root_of_the_length) {
  const double shortest = gain_of_norm(128, true), longest = gain_of_norm(4096, true);
  EXPECT_NEAR(std::log(longest / shortest) / std::log(4096.0 / 128), 0.5, 0.05);
  EXPECT_NEAR(longest, std::sqrt(4096.0), 0.15 * std::sqrt(4096.0));
  EXPECT_NEAR(gain_of_norm(4096, false), gain_of_norm(128, false), 1e-3)
      << "not of values that are all alike";
}

constexpr Index kWidth = 1024, kHeads = 16, kHeadDim = kWidth / kHeads;

Index attention_parameters(const char* kind, Index kv_heads) {
  ModelConfig model;
  model.d_model = kWidth;
  model.num_layers = 1;
  model.num_heads = kHeads;
  model.num_kv_heads = kv_heads;
  model.attention.kind = kind;
  Index count = 0;
  for (const auto& [part, parameters] : model_cost(model, 128).attention_parameters) {
    count += parameters;
  }
  return count;
}

TEST(V2Article, v2_saves_a_quarter_of_the_attention_parameters_of_twice_the_heads) {
  for (const Index kv_heads : {1, 2}) {
    const Index twice = attention_parameters("softmax_2h", kv_heads);
    const Index v2 = attention_parameters("diff_v2", kv_heads);
    const Index keys_and_values = 2 * kv_heads * kHeadDim * kWidth, lambda = kHeads * kWidth;
    EXPECT_EQ(4 * (twice - (v2 - lambda)), twice - keys_and_values)
        << "of queries and output, but for the projection of lambda; " << kv_heads << " key heads";
  }
}

TEST(V2Article, the_cache_of_v2_equals_the_baseline) {
  const auto cache = [](const char* kind) {
    ModelConfig model;
    model.attention.kind = kind;
    return model_cost(model, 128).kv_cache_per_token;
  };
  EXPECT_EQ(cache("diff_v2"), cache("softmax"));
}

}  // namespace
}  // namespace difftape
