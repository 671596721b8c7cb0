#include "train/stats/interval.h"

#include <array>

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

}  // namespace
}  // namespace difftape::stats
