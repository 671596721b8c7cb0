#include "train/stats/interval.h"

#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>

#include "core/random.h"
#include "core/real.h"

namespace difftape::stats {
namespace {

TEST(Interval, quantiles_of_student_t_are_those_of_the_tables) {
  EXPECT_NEAR(student_t_quantile(0.975, 1), 12.7062, 5e-5);
  EXPECT_NEAR(student_t_quantile(0.975, 2), 4.3027, 5e-5);
  EXPECT_NEAR(student_t_quantile(0.975, 4), 2.7764, 5e-5);
  EXPECT_NEAR(student_t_quantile(0.975, 30), 2.0423, 5e-5);
  EXPECT_NEAR(student_t_quantile(0.95, 10), 1.8125, 5e-5);
  EXPECT_NEAR(student_t_quantile(0.025, 4), -2.7764, 5e-5);
}

TEST(Interval, is_the_mean_with_t_times_its_standard_error) {
  const std::array values{1.0, 2.0, 3.0, 4.0, 5.0};
  const Interval interval = mean_interval(values);
  EXPECT_DOUBLE_EQ(interval.mean, 3);
  // Sum of squares 10, variance 10 / 4, standard error sqrt(2.5 / 5).
  EXPECT_NEAR(interval.half_width, 2.776445 * std::sqrt(0.5), 1e-6);
  EXPECT_DOUBLE_EQ(interval.low(), interval.mean - interval.half_width);
  EXPECT_DOUBLE_EQ(interval.high(), interval.mean + interval.half_width);
}

TEST(Interval, of_equal_values_has_no_width_and_of_one_or_none_none_that_is_known) {
  const std::array equal{2.5, 2.5, 2.5};
  const std::array one{7.0};
  EXPECT_EQ(mean_interval(equal).half_width, 0);
  EXPECT_EQ(mean_interval(one).mean, 7);
  EXPECT_TRUE(std::isnan(mean_interval(one).half_width));
  EXPECT_TRUE(std::isnan(mean_interval({}).mean));
}

TEST(Interval, carries_on_what_is_not_finite) {
  const std::array infinite{1.0, std::numeric_limits<double>::infinity()}, nan{1.0, std::nan("")};
  EXPECT_EQ(mean_interval(infinite).mean, std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(mean_interval(infinite).half_width));
  EXPECT_TRUE(std::isnan(mean_interval(nan).mean));
}

// Values of mpmath in tests/train/stats/reference.py.

TEST(StudentT, has_the_p_values_of_its_incomplete_beta_function) {
  EXPECT_NEAR(student_t_two_sided(2, 3), 0.139325968559, 1e-12);
  EXPECT_NEAR(student_t_two_sided(-2.5, 7), 0.0409922185858, 1e-12);
  EXPECT_NEAR(student_t_two_sided(30, 2), 0.00110926268196, 1e-13);
  EXPECT_EQ(student_t_two_sided(0, 4), 1);
  EXPECT_EQ(student_t_two_sided(std::numeric_limits<double>::infinity(), 4), 0);
  EXPECT_TRUE(std::isnan(student_t_two_sided(kNaN, 4)));
}

TEST(PairedDifference, of_students_own_example_is_the_published_one) {
  // "Student" (1908), hours of sleep gained by two drugs; R's t.test(paired = TRUE) prints
  // p-value = 0.002833 and -2.4598858 -0.7001142.
  const std::array a{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0},
      b{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};
  const PairedDifference sleep = paired_difference(a, b);
  EXPECT_EQ(sleep.pairs, 10);
  EXPECT_EQ(sleep.degrees, 9);
  EXPECT_NEAR(sleep.difference.mean, -1.58, 1e-12);
  EXPECT_NEAR(sleep.difference.half_width, 0.879885763277, 1e-11);
  EXPECT_NEAR(sleep.difference.low(), -2.4598858, 5e-8);
  EXPECT_NEAR(sleep.p, 0.00283289019738, 1e-13);
}

TEST(PairedDifference, of_three_seeds_knows_that_they_are_few) {
  const PairedDifference result =
      paired_difference(std::array{2.31, 2.305, 2.32}, std::array{2.33, 2.34, 2.335});
  EXPECT_NEAR(result.difference.mean, -0.0233333333333, 1e-12);
  EXPECT_NEAR(result.difference.half_width, 0.0258557250627, 1e-11);
  EXPECT_NEAR(result.p, 0.0603815227004, 1e-11);
}

TEST(PairedDifference, of_one_pair_has_no_interval_and_of_none_nothing) {
  const PairedDifference one = paired_difference(std::array{2.0}, std::array{3.0});
  EXPECT_EQ(one.difference.mean, -1);
  EXPECT_TRUE(std::isnan(one.difference.half_width));
  EXPECT_TRUE(std::isnan(one.p));
  EXPECT_TRUE(std::isnan(paired_difference({}, {}).difference.mean));
}

TEST(PairedDifference, of_equal_differences_is_judged_by_their_signs) {
  const std::array a{1.0, 5.0, 9.0}, b{0.0, 4.0, 8.0};
  EXPECT_EQ(paired_difference(a, b).p, 0.25) << "three heads in a row, or three tails";
  EXPECT_EQ(paired_difference(a, b).difference.half_width, 0);
  EXPECT_EQ(paired_difference(a, a).p, 1);
}

TEST(PairedDifference, takes_differences_that_only_rounding_tells_apart_for_equal) {
  // Spike scores: 0.4 - 0.1 and 0.3 - 0.0 are two numbers in floating point.
  const auto scores = [](std::array<int, 3> spikes) {
    std::array<double, 3> result;
    for (std::size_t i = 0; i < 3; ++i) result[i] = 100.0 * spikes[i] / 1000;
    return result;
  };
  const auto a = scores({3, 4, 3}), b = scores({0, 1, 0});
  ASSERT_NE(a[0] - b[0], a[1] - b[1]);
  const PairedDifference result = paired_difference(b, a);
  EXPECT_NEAR(result.difference.mean, -0.3, 1e-12);
  EXPECT_EQ(result.difference.half_width, 0);
  EXPECT_EQ(result.p, 0.25);
  const PairedDifference none = paired_difference(std::array{0.1 + 0.2, 0.7}, std::array{0.3, 0.7});
  EXPECT_EQ(none.difference.mean, 0);
  EXPECT_EQ(none.p, 1);
  EXPECT_LT(paired_difference(std::array{1.0, 1.1, 1.2}, std::array{0.0, 0.1 - 1e-6, 0.2}).p, 1e-10)
      << "a millionth is a difference";
}

TEST(PairedDifference, carries_on_a_nan) {
  const PairedDifference result = paired_difference(std::array{1.0, kNaN}, std::array{1.0, 2.0});
  EXPECT_TRUE(std::isnan(result.difference.mean));
  EXPECT_TRUE(std::isnan(result.p));
}

TEST(PairedDifference, without_an_effect_is_below_a_twentieth_once_in_twenty) {
  const RandomStream noise(3, "paired");
  int below = 0;
  constexpr int kTrials = 4000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::array<double, 4> a, b;
    for (std::size_t i = 0; i < 4; ++i) {
      const auto index = static_cast<std::uint64_t>(trial) * 8 + 2 * i;
      a[i] = noise.normal(index);
      b[i] = noise.normal(index + 1);
    }
    below += paired_difference(a, b).p < 0.05 ? 1 : 0;
  }
  // Binomial: 200 with a standard deviation of 14.
  EXPECT_NEAR(below, kTrials / 20, 50);
}

TEST(ErrorParts, add_up_with_the_degrees_of_welch_and_satterthwaite) {
  // Two samples of variances 4 and 9 of the mean, with 5 and 11 degrees of freedom.
  const ErrorPart sum = sum_of_errors(std::array{ErrorPart{4, 5}, ErrorPart{9, 11}});
  EXPECT_DOUBLE_EQ(sum.variance, 13);
  EXPECT_DOUBLE_EQ(sum.degrees, 169 / (16.0 / 5 + 81.0 / 11));
  const ErrorPart one = sum_of_errors(std::array{ErrorPart{4, 5}, ErrorPart{0, 1}});
  EXPECT_EQ(one.variance, 4);
  EXPECT_EQ(one.degrees, 5) << "a part without variance has no say";
}

TEST(ErrorParts, widen_an_estimate_that_has_a_spread) {
  const PairedDifference seeds =
      paired_difference(std::array{1.2, 1.1, 1.4}, std::array{1., 1., 1.});
  const ErrorPart text = mean_error(std::array{0.1, 0.3, 0.2, 0.4});
  EXPECT_NEAR(text.variance, 0.05 / 3 / 4, 1e-15);
  EXPECT_EQ(text.degrees, 3);
  const PairedDifference both = with_error(seeds, text);
  EXPECT_EQ(both.difference.mean, seeds.difference.mean);
  EXPECT_EQ(both.pairs, 3);
  EXPECT_NEAR(both.error, std::sqrt(seeds.error * seeds.error + text.variance), 1e-15);
  EXPECT_GT(both.degrees, 2);
  EXPECT_NEAR(both.p, student_t_two_sided(both.difference.mean / both.error, both.degrees), 1e-15);
  EXPECT_NEAR(both.difference.half_width, both.error * student_t_quantile(0.975, both.degrees),
              1e-15);
  const PairedDifference equal = paired_difference(std::array{1., 1., 1.}, std::array{0., 0., 0.});
  EXPECT_EQ(with_error(equal, text).p, equal.p) << "no spread is known, so signs judge";
}

TEST(Holm, steps_down_from_the_smallest) {
  const std::vector<double> adjusted = holm(std::array{0.01, 0.04, 0.03, 0.005});
  const std::array expected{0.03, 0.06, 0.06, 0.02};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(adjusted[i], expected[i], 1e-15);
}

TEST(Holm, gives_ties_one_value_and_no_more_than_one) {
  const std::vector<double> adjusted = holm(std::array{0.5, 0.6, 0.02, 0.02});
  EXPECT_EQ(adjusted, (std::vector{1.0, 1.0, 0.08, 0.08}));
}

TEST(Holm, does_not_count_what_was_not_tested) {
  const std::vector<double> adjusted = holm(std::array{0.01, kNaN, 0.02, kNaN});
  EXPECT_DOUBLE_EQ(adjusted[0], 0.02);
  EXPECT_DOUBLE_EQ(adjusted[2], 0.02);
  EXPECT_TRUE(std::isnan(adjusted[1]) && std::isnan(adjusted[3]));
  EXPECT_TRUE(holm({}).empty());
}

RC_GTEST_PROP(Holm, never_lowers_and_keeps_the_order, (std::vector<unsigned> draws)) {
  std::vector<double> p;
  for (const unsigned draw : draws) p.push_back((draw % 1001) / 1000.0);
  const std::vector<double> adjusted = holm(p);
  for (std::size_t i = 0; i < p.size(); ++i) {
    RC_ASSERT(adjusted[i] >= p[i] && adjusted[i] <= 1);
    for (std::size_t j = 0; j < p.size(); ++j) RC_ASSERT(p[i] > p[j] || adjusted[i] <= adjusted[j]);
  }
}
}  // namespace
}  // namespace difftape::stats
