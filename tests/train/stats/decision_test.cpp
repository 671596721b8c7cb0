#include "train/stats/decision.h"

#include "core/random.h"
#include "tests/support/test.h"
#include "train/stats/interval.h"

namespace difftape::stats {
namespace {

PairedDifference paired(const std::vector<double>& differences) {
  return paired_difference(differences, std::vector<double>(differences.size()));
}

TEST(IntervalAt, has_half_of_the_level_in_each_tail) {
  // scipy.stats.t.interval(0.99, 5, mean(d), sem(d)) for these differences.
  const Interval found = interval_at(paired({0.2, -0.1, 0.4, 0.1, -0.3, 0.2}), 0.01);
  EXPECT_NEAR(found.low(), -0.325442804286, 1e-9);
  EXPECT_NEAR(found.high(), 0.492109470953, 1e-9);
}

TEST(IntervalAt, of_the_95_percent_level_is_the_interval_of_the_estimate) {
  const PairedDifference d = paired({1.2, 0.9, 1.4, 1.1, 0.7, 1.2});
  EXPECT_NEAR(interval_at(d, 0.05).half_width, d.difference.half_width, 1e-12);
}

TEST(IntervalAt, of_equal_differences_is_a_point_once_the_sign_test_decides) {
  const PairedDifference three = paired({1, 1, 1}), six = paired({1, 1, 1, 1, 1, 1});
  EXPECT_EQ(least_p(3), 0.25);
  EXPECT_EQ(interval_at(three, 0.05).half_width, kInfinity) << "2^-2 is above the level";
  EXPECT_EQ(interval_at(six, 0.05).half_width, 0) << "2^-5 is below it";
}

TEST(IntervalAt, is_unbounded_for_one_pair) {
  EXPECT_EQ(interval_at(paired({1}), 0.05).half_width, kInfinity);
}

TEST(Power, is_how_often_the_test_finds_the_effect) {
  const RandomStream noise(5, "power");
  constexpr int kTrials = 20000;
  int found = 0, above = 0, equal = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> effect, none;
    for (std::uint64_t i = 0; i < 8; ++i) {
      const double value = noise.normal(static_cast<std::uint64_t>(trial) * 8 + i);
      effect.push_back(0.8 + value);
      none.push_back(value);
    }
    found += paired(effect).p < 0.05 ? 1 : 0;
    above += interval_at(paired(effect), 0.1).low() > 0 ? 1 : 0;
    const Interval narrow = interval_at(paired(none), 0.1);
    equal += narrow.low() > -0.9 && narrow.high() < 0.9 ? 1 : 0;
  }
  const double error = 1 / std::sqrt(8.0);
  EXPECT_NEAR(two_sided_power(0.8, error, 7, 0.05), static_cast<double>(found) / kTrials, 0.011);
  EXPECT_NEAR(equivalence_power(0.9, error, 7, 0.05), static_cast<double>(equal) / kTrials, 0.011);
  EXPECT_NEAR(one_sided_power(0.8, error, 7, 0.05), static_cast<double>(above) / kTrials, 0.011);
  EXPECT_NEAR(two_sided_power(0, error, 7, 0.05), 0.05, 1e-9);
  EXPECT_NEAR(one_sided_power(0, error, 7, 0.05), 0.05, 1e-9);
}

}  // namespace
}  // namespace difftape::stats
