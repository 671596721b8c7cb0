// Attention at the edges of its range: finite and right, or visibly not a number.
#include "tests/core/attention_problem.h"

namespace difftape {
namespace {

constexpr Index kWidth = 2;
constexpr Precision kPrecisions[] = {Precision::full, Precision::bf16_emulated};

/// One or two maps with scores q_t * k_s and unit scale: the first feature carries them, the second
/// is 0.
struct Extreme : test::Problem {
  Extreme(bool differential, Index seq)
      : Problem(differential ? HeadMapping::doubled(1, 1) : HeadMapping::standard(1, 1), 1, seq,
                kWidth, kWidth) {
    in.scale = 1;
    in.q.fill(0);
    in.k.fill(0);
    in.lambda.fill(real(0.25));
  }
  void set_queries(real value) {
    for (Index i = 0; i < in.q.size(); i += kWidth) in.q.data()[i] = value;
  }
  real& key(Index s) { return in.k.row(s)[0]; }
  AttentionGradients backward() const {
    return Problem::backward(Tensor::full(forward().out.shape(), 1));
  }
};

void expect_finite(const AttentionGradients& gradients, bool differential) {
  EXPECT_TRUE(gradients.dq.all_finite());
  EXPECT_TRUE(gradients.dk.all_finite());
  EXPECT_TRUE(gradients.dv.all_finite());
  EXPECT_TRUE(!differential || gradients.dlambda.all_finite());
}

struct Extremes : testing::TestWithParam<bool> {
  bool differential = GetParam();
  /// The sum of the maps.
  real whole = differential ? real(0.75) : real(1);
};

TEST_P(Extremes, logits_of_ten_thousand_pick_the_largest_key_exactly) {
  Extreme problem(differential, 70);
  problem.set_queries(100);
  for (Index s = 0; s < 70; ++s) problem.key(s) = s % 2 == 0 ? -100 : real(-100 + s);
  problem.key(33) = 100;
  const Tensor out = problem.forward().out;
  for (Index t = 33; t < 70; ++t) {
    EXPECT_EQ(out.row(t)[0], whole * problem.in.v.row(33)[0]) << t;
  }
  expect_finite(problem.backward(), differential);
}

TEST_P(Extremes, equal_logits_of_any_size_give_the_mean) {
  for (const real logit : {real(0), real(1e4), real(-1e4), real(3.3e9), real(-1e30)}) {
    Extreme problem(differential, 40);
    problem.in.scale = 0.7;
    problem.set_queries(1);
    for (Index s = 0; s < 40; ++s) problem.key(s) = logit;
    const Tensor out = problem.forward().out;
    double total = 0;
    for (Index t = 0; t < 40; ++t) {
      total += static_cast<double>(problem.in.v.row(t)[1]);
      const double mean = static_cast<double>(whole) * total / static_cast<double>(t + 1);
      EXPECT_NEAR(static_cast<double>(out.row(t)[1]), mean,
                  4 * std::numeric_limits<real>::epsilon());
    }
    expect_finite(problem.backward(), differential);
  }
}

TEST_P(Extremes, one_token_gets_its_own_value_and_moves_no_query) {
  Extreme problem(differential, 1);
  problem.set_queries(3);
  problem.key(0) = -7;
  EXPECT_EQ(problem.forward().out.row(0)[1], whole * problem.in.v.row(0)[1]);
  const AttentionGradients gradients = problem.backward();
  for (real g : gradients.dq.values()) EXPECT_EQ(g, 0);
  for (real g : gradients.dk.values()) EXPECT_EQ(g, 0);
  for (real g : gradients.dv.values()) EXPECT_EQ(g, whole);
}

TEST_P(Extremes, a_sink_far_above_every_score_takes_everything) {
  for (const Precision precision : kPrecisions) {
    Extreme problem(differential, 30);
    problem.in.precision = precision;
    problem.set_queries(1);
    for (Index s = 0; s < 30; ++s) problem.key(s) = static_cast<real>(s % 3);
    problem.in.sinks = Tensor::full({problem.in.mapping.query_heads}, 1e4);
    for (real x : problem.forward().out.values()) EXPECT_EQ(x, 0);
    const AttentionGradients gradients = problem.backward();
    for (const auto which :
         {&AttentionGradients::dq, &AttentionGradients::dv, &AttentionGradients::dsinks}) {
      for (real g : (gradients.*which).values()) EXPECT_EQ(g, 0);
    }
  }
}

TEST_P(Extremes, subnormals_count_as_small_numbers) {
  constexpr real kTiny = std::numeric_limits<real>::denorm_min() * 1000;
  Extreme problem(differential, 20);
  problem.set_queries(kTiny);
  for (Index s = 0; s < 20; ++s) {
    problem.key(s) = kTiny;
    problem.in.v.row(s)[0] = kTiny;
  }
  const Tensor out = problem.forward().out;
  for (Index t = 0; t < 20; ++t) {
    EXPECT_NEAR(static_cast<double>(out.row(t)[0] / kTiny), static_cast<double>(whole), 0.02) << t;
  }
  expect_finite(problem.backward(), differential);
}

TEST_P(Extremes, nan_reaches_exactly_the_rows_that_see_it) {
  for (const real poison :
       {std::numeric_limits<real>::quiet_NaN(), std::numeric_limits<real>::infinity()}) {
    for (const Precision precision : kPrecisions) {
      Extreme problem(differential, 91);
      problem.in.precision = precision;
      problem.set_queries(1);
      problem.key(50) = poison;
      const Tensor out = problem.forward().out;
      for (Index t = 0; t < 91; ++t) EXPECT_EQ(std::isnan(out.row(t)[0]), t >= 50) << t;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Maps, Extremes, testing::Values(false, true),
                         [](const auto& param) { return param.param ? "two" : "one"; });

}  // namespace
}  // namespace difftape
