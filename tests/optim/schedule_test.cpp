#include "optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace difftape {
namespace {

OptimConfig config(const std::string& kind, Index warmup = 4) {
  return {.lr = 1.0,
          .min_lr = 0.2,
          .schedule = from_string<ScheduleKind>(kind).value(),
          .warmup_steps = warmup};
}

TEST(Schedule, warms_up_in_equal_parts_and_reaches_the_peak_at_the_last_warmup_step) {
  for (const std::string& kind : names<ScheduleKind>()) {
    const auto schedule = make_schedule(config(kind), 100);
    EXPECT_EQ(schedule->lr(0), 0.25) << kind;
    EXPECT_EQ(schedule->lr(1), 0.5) << kind;
    EXPECT_EQ(schedule->lr(2), 0.75) << kind;
    EXPECT_EQ(schedule->lr(3), 1.0) << kind;
  }
}

TEST(Schedule, cosine_falls_from_the_peak_to_the_floor_at_the_last_step) {
  const auto schedule = make_schedule(config("cosine"), 12);  // peak at step 3, floor at step 11
  EXPECT_NEAR(schedule->lr(5), 0.2 + 0.8 * (1 + std::sqrt(0.5)) / 2, 1e-15);
  EXPECT_NEAR(schedule->lr(7), 0.6, 1e-15);
  EXPECT_NEAR(schedule->lr(9), 0.2 + 0.8 * (1 - std::sqrt(0.5)) / 2, 1e-15);
  EXPECT_EQ(schedule->lr(11), 0.2);
  EXPECT_EQ(schedule->lr(50), 0.2);
}

TEST(Schedule, linear_falls_by_the_same_amount_each_step) {
  const auto schedule = make_schedule(config("linear"), 12);
  EXPECT_NEAR(schedule->lr(4), 0.9, 1e-15);
  EXPECT_NEAR(schedule->lr(7), 0.6, 1e-15);
  EXPECT_NEAR(schedule->lr(10), 0.3, 1e-15);
  EXPECT_EQ(schedule->lr(11), 0.2);
}

TEST(Schedule, constant_stays_at_the_peak) {
  const auto schedule = make_schedule(config("constant"), 12);
  for (Index step = 3; step < 20; ++step) EXPECT_EQ(schedule->lr(step), 1.0);
}

TEST(Schedule, wsd_is_flat_and_then_falls_linearly_over_the_last_fraction) {
  OptimConfig wsd = config("wsd");
  wsd.decay_fraction = 0.2;
  const auto schedule = make_schedule(wsd, 20);  // 4 steps of decay: peak at 15, floor at 19
  for (Index step = 3; step <= 15; ++step) EXPECT_EQ(schedule->lr(step), 1.0) << step;
  EXPECT_NEAR(schedule->lr(16), 0.8, 1e-15);
  EXPECT_NEAR(schedule->lr(17), 0.6, 1e-15);
  EXPECT_NEAR(schedule->lr(18), 0.4, 1e-15);
  EXPECT_EQ(schedule->lr(19), 0.2);
}

TEST(Schedule, without_warmup_starts_at_the_peak) {
  const auto schedule = make_schedule(config("linear", 0), 5);
  EXPECT_EQ(schedule->lr(0), 1.0);
  EXPECT_NEAR(schedule->lr(1), 0.8, 1e-15);
  EXPECT_EQ(schedule->lr(4), 0.2);
}

TEST(Schedule, a_warmup_that_fills_the_run_leaves_nothing_to_decay) {
  const auto schedule = make_schedule(config("cosine", 8), 4);
  EXPECT_EQ(schedule->lr(3), 0.5);
  EXPECT_EQ(make_schedule(config("cosine", 1), 1)->lr(0), 1.0);
}

TEST(Schedule, has_four_kinds_by_name) {
  EXPECT_EQ(names<ScheduleKind>(),
            (std::vector<std::string>{"cosine", "linear", "constant", "wsd"}));
  EXPECT_FALSE(from_string<ScheduleKind>("cosin"));
}

}  // namespace
}  // namespace difftape
