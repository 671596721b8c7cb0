#include "train/stats/lr_optimum.h"

#include <rapidcheck/gtest.h>

#include "tests/support/test.h"
#include "train/stats/descriptive.h"

namespace difftape::stats {
namespace {

const RandomStream kStream(1, "test");

LrOptimum of_means(const std::vector<double>& rates, const std::vector<double>& means) {
  std::vector<std::vector<double>> losses;
  for (const double mean : means) losses.push_back({mean});
  return lr_optimum(rates, losses, kStream);
}

// Values of numpy.polyfit, by tests/train/stats/reference.py.
TEST(LrOptimum, is_the_vertex_of_the_parabola_through_the_lowest_rung_and_its_neighbors) {
  const LrOptimum uneven = of_means({1e-3, 2e-3, 8e-3}, {1.8, 1.5, 1.6});
  EXPECT_NEAR(uneven.lr, 0.003447891284987909, 1e-14);
  EXPECT_NEAR(uneven.loss, 1.427976190476195, 1e-12);
  const LrOptimum screen = of_means({4e-3, 8e-3, 1.6e-2, 3.2e-2}, {1.736, 1.652, 1.644, 1.693});
  EXPECT_NEAR(screen.lr, 0.012469665647411117, 1e-14);
  EXPECT_NEAR(screen.loss, 1.640313596491228, 1e-12);
  EXPECT_EQ(screen.lowest, 2u);
  EXPECT_TRUE(std::isnan(screen.low)) << "one seed has no interval";
}

TEST(LrOptimum, of_a_symmetric_curve_is_its_lowest_rung) {
  const LrOptimum found = of_means({1e-3, 2e-3, 4e-3}, {2.0, 1.5, 2.0});
  EXPECT_DOUBLE_EQ(found.lr, 2e-3);
  EXPECT_DOUBLE_EQ(found.loss, 1.5);
  EXPECT_NEAR(of_means({1e-3, 2e-3, 4e-3}, {2.0, 1.5, 1.5}).lr, 2e-3 * std::sqrt(2), 1e-15)
      << "between two equal rungs";
}

TEST(LrOptimum, needs_a_lowest_rung_between_two_others) {
  const std::vector<double> rates{1e-3, 2e-3, 4e-3};
  EXPECT_EQ(of_means(rates, {1.5, 1.6, 1.7}).reason,
            "the lowest mean loss is at the lower end of the ladder, 0.001; extend the ladder "
            "downward");
  EXPECT_EQ(of_means(rates, {1.9, 1.6, 1.5}).reason,
            "the lowest mean loss is at the upper end of the ladder, 0.004; extend the ladder "
            "upward");
  EXPECT_THAT(of_means({1e-3, 2e-3}, {2, 1}).reason, HasSubstr("2 learning rates"));
  EXPECT_THAT(of_means(rates, {2, 1, kNaN}).reason, HasSubstr("unknown"));
  EXPECT_THAT(of_means(rates, {2, 2, 2}).reason, HasSubstr("lower end"));
  EXPECT_THAT(lr_optimum(rates, {}, kStream).reason, HasSubstr("no seed"));
  EXPECT_TRUE(std::isnan(of_means(rates, {1.5, 1.6, 1.7}).lr));
}

/// A parabola in log(lr) around `best`, with noise per seed and per run.
std::vector<std::vector<double>> ladder(const std::vector<double>& rates, std::size_t seeds,
                                        double best, const RandomStream& noise) {
  std::vector<std::vector<double>> losses(rates.size(), std::vector<double>(seeds));
  for (std::size_t rate = 0; rate < rates.size(); ++rate) {
    for (std::size_t seed = 0; seed < seeds; ++seed) {
      const double x = std::log(rates[rate] / best);
      losses[rate][seed] = 1.6 + 0.05 * x * x + 0.02 * noise.normal(seed) +
                           0.01 * noise.normal(97 * rate + seed + 9);
    }
  }
  return losses;
}

TEST(LrOptimum, has_a_deterministic_interval_for_four_or_more_seeds) {
  const std::vector<double> rates{4e-3, 8e-3, 1.6e-2, 3.2e-2};
  const auto losses = ladder(rates, 4, 1.1e-2, RandomStream(3, "ladder"));
  const LrOptimum found = lr_optimum(rates, losses, kStream);
  EXPECT_LT(found.low, found.lr);
  EXPECT_GT(found.high, found.lr);
  EXPECT_EQ(lr_optimum(rates, losses, kStream).low, found.low);

  // All of the 4^4 draws there are.
  std::vector<double> all;
  for (int draw = 0; draw < 256; ++draw) {
    std::vector<std::vector<double>> drawn = losses;
    for (std::size_t rate = 0; rate < rates.size(); ++rate)
      for (std::size_t i = 0; i < 4; ++i)
        drawn[rate][i] = losses[rate][static_cast<std::size_t>(draw >> (2 * i)) & 3];
    all.push_back(lr_optimum(rates, drawn, kStream, 1).lr);
  }
  // Four seeds: a normal variable exceeds sqrt(4 / 3) 3.182 = 3.675 with probability 1.19e-4.
  EXPECT_NEAR(found.low / quantile(all, 1.19e-4), 1, 0.01);
  EXPECT_NEAR(found.high / quantile(all, 1 - 1.19e-4), 1, 0.01);

  auto three = losses;
  for (std::vector<double>& of_rate : three) of_rate.pop_back();
  EXPECT_TRUE(std::isnan(lr_optimum(rates, three, kStream).low));
  EXPECT_FALSE(std::isnan(lr_optimum(rates, three, kStream).lr));
}

TEST(LrOptimum, interval_contains_the_true_rate_in_95_of_100_studies_of_six_seeds) {
  const std::vector<double> rates{2e-3, 4e-3, 8e-3, 1.6e-2, 3.2e-2};
  constexpr int kStudies = 500;
  int holds = 0;
  double bias = 0;
  for (std::uint64_t study = 0; study < kStudies; ++study) {
    const auto losses = ladder(rates, 6, 9e-3, RandomStream(study, "ladder"));
    const LrOptimum found = lr_optimum(rates, losses, kStream, 2000);
    holds += found.low <= 9e-3 && 9e-3 <= found.high ? 1 : 0;
    bias += std::log(found.lr / 9e-3) / kStudies;
  }
  const double error = std::sqrt(0.95 * 0.05 / kStudies);
  EXPECT_NEAR(holds / static_cast<double>(kStudies), 0.95, 3 * error);
  EXPECT_NEAR(bias, 0, 0.01);
}

TEST(LrOptimum, counts_draws_whose_lowest_rung_is_at_an_end_with_that_end) {
  const std::vector<double> rates{1e-3, 2e-3, 4e-3};
  const LrOptimum found = lr_optimum(
      rates, std::vector<std::vector<double>>{{2, 2, 2, 2}, {1, 1.4, 1, 1.4}, {1.5, 1, 1.5, 1}},
      kStream);
  EXPECT_TRUE(found.reason.empty());
  EXPECT_NEAR(found.high, 4e-3, 1e-15);
}

TEST(CappedLoss, is_the_loss_at_init_for_a_run_that_diverged_or_got_worse) {
  EXPECT_EQ(capped_loss(2.3, 5.5), 2.3);
  EXPECT_EQ(capped_loss(7, 5.5), 5.5);
  EXPECT_EQ(capped_loss(kNaN, 5.5), 5.5);
  EXPECT_EQ(capped_loss(kInfinity, 5.5), 5.5);
  EXPECT_TRUE(std::isnan(capped_loss(2.3, kNaN))) << "no value is invented";
}

TEST(LrSensitivity, is_the_mean_excess_over_the_best_rate) {
  EXPECT_DOUBLE_EQ(lr_sensitivity({{2.5}, {2.0}, {5.0}}), (0.5 + 0 + 3) / 3);
  // Seeds are averaged at each learning rate first: 2.4, 2.1, 4.
  EXPECT_NEAR(lr_sensitivity({{2.2, 2.6}, {2.1, 2.1}, {5.5, 2.5}}), (0.3 + 0 + 1.9) / 3, 1e-15);
}

TEST(LrSensitivity, is_zero_for_equal_losses_and_unknown_for_one_rate) {
  EXPECT_EQ(lr_sensitivity({{2.0, 2.0}, {2.0}}), 0);
  EXPECT_TRUE(std::isnan(lr_sensitivity({{2.0, 2.1}})));
  EXPECT_TRUE(std::isnan(lr_sensitivity({})));
  EXPECT_TRUE(std::isnan(lr_sensitivity({{2.0}, {}})));
  EXPECT_TRUE(std::isnan(lr_sensitivity({{2.0}, {kNaN}})));
}

RC_GTEST_PROP(LrSensitivity, does_not_depend_on_a_shift_of_rates_or_losses,
              (std::vector<int> raw)) {
  raw.insert(raw.end(), {7, 3});
  Groups losses, moved;
  for (const int value : raw) {
    losses.push_back({(value % 1000) / 8.0});
    moved.insert(moved.begin(), {losses.back().front() + 2});
  }
  const double e = lr_sensitivity(losses);
  RC_ASSERT(e >= 0);
  RC_ASSERT(std::abs(e - lr_sensitivity(moved)) < 1e-9);
}

TEST(Bootstrap, limits_of_a_mean_match_the_normal_distribution) {
  const RandomStream noise(1, "sample");
  Groups sample(1);
  for (std::uint64_t i = 0; i < 200; ++i) sample[0].push_back(noise.normal(i));
  const auto mean_of = [](const Groups& groups) { return mean(groups[0]); };
  const Limits limits = bootstrap_limits(sample, mean_of, RandomStream(1, "bootstrap"));
  const double center = mean(sample[0]), error = std::sqrt(variance(sample[0]) / 200);
  EXPECT_NEAR(limits.low, center - 1.96 * error, 0.1 * error);
  EXPECT_NEAR(limits.high, center + 1.96 * error, 0.1 * error);
}

TEST(Bootstrap, of_two_values_reaches_from_one_to_the_other) {
  const auto mean_of = [](const Groups& groups) { return mean(groups[0]); };
  const Limits limits = bootstrap_limits({{1, 3}}, mean_of, RandomStream(1, "bootstrap"));
  EXPECT_EQ(limits.low, 1) << "a quarter of the draws is (1, 1)";
  EXPECT_EQ(limits.high, 3);
}

TEST(Bootstrap, draws_within_each_group_and_is_deterministic) {
  const Groups groups{{1, 2, 4}, {100, 101, 103}};
  const auto in_place = [](const Groups& drawn) {
    bool ok = true;
    for (const double value : drawn[0]) ok = ok && value < 5;
    for (const double value : drawn[1]) ok = ok && value > 99;
    return ok ? drawn[1][0] - drawn[0][0] : kNaN;
  };
  const Limits once = bootstrap_limits(groups, in_place, RandomStream(1, "a"), 1000);
  const Limits again = bootstrap_limits(groups, in_place, RandomStream(1, "a"), 1000);
  EXPECT_EQ(once.low, 96);
  EXPECT_EQ(once.high, 102);
  EXPECT_EQ(once.low, again.low);
  EXPECT_EQ(once.high, again.high);
}

TEST(Bootstrap, has_no_limits_if_a_group_has_one_value) {
  const Limits limits =
      bootstrap_limits({{1, 2}, {3}}, lr_sensitivity, RandomStream(1, "bootstrap"));
  EXPECT_TRUE(std::isnan(limits.low) && std::isnan(limits.high));
}

TEST(Bootstrap, limits_of_the_sensitivity_contain_it) {
  const Groups losses{{2.5, 2.52, 2.49}, {2.3, 2.31, 2.28}, {2.4, 5.5, 2.45}};
  const Limits limits = bootstrap_limits(losses, lr_sensitivity, RandomStream(1, "bootstrap"));
  EXPECT_LT(limits.low, lr_sensitivity(losses));
  EXPECT_GT(limits.high, lr_sensitivity(losses));
}

}  // namespace
}  // namespace difftape::stats
