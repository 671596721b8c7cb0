#include "train/stats/lr_optimum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "train/stats/descriptive.h"

namespace difftape::stats {
namespace {

using testing::HasSubstr;

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

TEST(LrOptimum, is_refused_where_it_is_not_bracketed) {
  const std::vector<double> rates{1e-3, 2e-3, 4e-3};
  EXPECT_EQ(of_means(rates, {1.5, 1.6, 1.7}).reason,
            "the lowest mean loss is at the lower end of the ladder, 0.001; extend the ladder "
            "downward");
  EXPECT_EQ(of_means(rates, {1.9, 1.6, 1.5}).reason,
            "the lowest mean loss is at the upper end of the ladder, 0.004; extend the ladder "
            "upward");
  EXPECT_THAT(of_means({1e-3, 2e-3}, {2, 1}).reason, HasSubstr("2 learning rates"));
  EXPECT_THAT(of_means(rates, {2, 1, kNaN}).reason, HasSubstr("not known"));
  EXPECT_THAT(of_means(rates, {2, 2, 2}).reason, HasSubstr("lower end"));
  EXPECT_THAT(lr_optimum(rates, {}, kStream).reason, HasSubstr("no seed"));
  EXPECT_TRUE(std::isnan(of_means(rates, {1.5, 1.6, 1.7}).lr));
}

/// A parabola in log lr about `best`, with noise of each seed and of each run.
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

TEST(LrOptimum, has_an_interval_from_four_seeds_on_and_the_same_one_every_time) {
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
    for (std::size_t rate = 0; rate < rates.size(); ++rate) {
      for (std::size_t i = 0; i < 4; ++i)
        drawn[rate][i] = losses[rate][static_cast<std::size_t>(draw >> (2 * i)) & 3];
    }
    all.push_back(lr_optimum(rates, drawn, kStream, 1).lr);
  }
  // Four seeds: a normal variable is beyond sqrt(4 / 3) 3.182 = 3.675 deviations in 1.19e-4.
  EXPECT_NEAR(found.low / quantile(all, 1.19e-4), 1, 0.01);
  EXPECT_NEAR(found.high / quantile(all, 1 - 1.19e-4), 1, 0.01);

  auto three = losses;
  for (std::vector<double>& of_rate : three) of_rate.pop_back();
  EXPECT_TRUE(std::isnan(lr_optimum(rates, three, kStream).low));
  EXPECT_FALSE(std::isnan(lr_optimum(rates, three, kStream).lr));
}

TEST(LrOptimum, interval_holds_the_true_rate_in_95_of_100_studies_of_six_seeds) {
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

}  // namespace
}  // namespace difftape::stats
