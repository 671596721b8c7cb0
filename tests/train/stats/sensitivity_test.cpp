#include "train/stats/sensitivity.h"
#include "core/real.h"

#include <rapidcheck/gtest.h>

#include <limits>

#include "train/stats/descriptive.h"

namespace difftape::stats {
namespace {

TEST(CappedLoss, is_the_loss_at_init_for_a_run_that_diverged_or_got_worse) {
  EXPECT_EQ(capped_loss(2.3, 5.5), 2.3);
  EXPECT_EQ(capped_loss(7, 5.5), 5.5);
  EXPECT_EQ(capped_loss(kNaN, 5.5), 5.5);
  EXPECT_EQ(capped_loss(kInfinity, 5.5), 5.5);
  EXPECT_TRUE(std::isnan(capped_loss(2.3, kNaN))) << "no number is made up";
}

TEST(LrSensitivity, is_the_mean_excess_over_the_best_rate) {
  EXPECT_DOUBLE_EQ(lr_sensitivity({{2.5}, {2.0}, {5.0}}), (0.5 + 0 + 3) / 3);
  // Seeds are averaged at each learning rate first: 2.4, 2.1, 4.
  EXPECT_NEAR(lr_sensitivity({{2.2, 2.6}, {2.1, 2.1}, {5.5, 2.5}}), (0.3 + 0 + 1.9) / 3, 1e-15);
}

TEST(LrSensitivity, of_equal_losses_is_nothing_and_of_one_rate_unknown) {
  EXPECT_EQ(lr_sensitivity({{2.0, 2.0}, {2.0}}), 0);
  EXPECT_TRUE(std::isnan(lr_sensitivity({{2.0, 2.1}})));
  EXPECT_TRUE(std::isnan(lr_sensitivity({})));
  EXPECT_TRUE(std::isnan(lr_sensitivity({{2.0}, {}})));
  EXPECT_TRUE(std::isnan(lr_sensitivity({{2.0}, {kNaN}})));
}

RC_GTEST_PROP(LrSensitivity, does_not_see_a_shift_of_rates_nor_of_losses, (std::vector<int> raw)) {
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

TEST(Bootstrap, limits_of_a_mean_are_those_of_the_normal_distribution) {
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

TEST(Bootstrap, draws_within_each_group_and_the_same_every_time) {
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

TEST(Bootstrap, has_no_limits_where_a_group_is_one_value) {
  const Limits limits =
      bootstrap_limits({{1, 2}, {3}}, lr_sensitivity, RandomStream(1, "bootstrap"));
  EXPECT_TRUE(std::isnan(limits.low) && std::isnan(limits.high));
}

TEST(Bootstrap, of_the_sensitivity_holds_it) {
  const Groups losses{{2.5, 2.52, 2.49}, {2.3, 2.31, 2.28}, {2.4, 5.5, 2.45}};
  const Limits limits = bootstrap_limits(losses, lr_sensitivity, RandomStream(1, "bootstrap"));
  EXPECT_LT(limits.low, lr_sensitivity(losses));
  EXPECT_GT(limits.high, lr_sensitivity(losses));
}

}  // namespace
}  // namespace difftape::stats
