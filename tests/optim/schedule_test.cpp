#include "optim/schedule.h"

#include "tests/support/test.h"

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
    const Schedule schedule(config(kind), 100);
    for (Index step = 0; step < 4; ++step) EXPECT_EQ(schedule.lr(step), 0.25 * (step + 1)) << kind;
  }
}

/// The learning rates of a schedule over `steps` steps.
void expect_course(const OptimConfig& optim, Index steps, const std::map<Index, double>& rates) {
  const Schedule schedule(optim, steps);
  for (const auto& [step, lr] : rates) {
    EXPECT_NEAR(schedule.lr(step), lr, lr == 1 || lr == 0.2 ? 0 : 1e-15)
        << to_string(optim.schedule) << " at step " << step;
  }
}

TEST(Schedule, falls_from_the_peak_to_the_floor_at_the_last_step) {
  const double above = (1 + std::sqrt(0.5)) / 2, below = (1 - std::sqrt(0.5)) / 2;
  expect_course(
      config("cosine"), 12,  // peak at step 3, floor at step 11
      {{3, 1}, {5, 0.2 + 0.8 * above}, {7, 0.6}, {9, 0.2 + 0.8 * below}, {11, 0.2}, {50, 0.2}});
  expect_course(config("linear"), 12, {{3, 1}, {4, 0.9}, {7, 0.6}, {10, 0.3}, {11, 0.2}});
  expect_course(config("constant"), 12, {{3, 1}, {4, 1}, {7, 1}, {11, 1}, {12, 1}, {19, 1}});
}

TEST(Schedule, wsd_is_flat_and_then_falls_linearly_over_the_last_fraction) {
  OptimConfig wsd = config("wsd");
  wsd.decay_fraction = 0.2;  // 4 steps of 20: peak at 15, floor at 19
  for (Index step = 3; step <= 15; ++step) expect_course(wsd, 20, {{step, 1}});
  expect_course(wsd, 20, {{16, 0.8}, {17, 0.6}, {18, 0.4}, {19, 0.2}});
}

TEST(Schedule, without_warmup_starts_at_the_peak) {
  expect_course(config("linear", 0), 5, {{0, 1}, {1, 0.8}, {4, 0.2}});
}

TEST(Schedule, a_warmup_that_fills_the_run_leaves_nothing_to_decay) {
  expect_course(config("cosine", 8), 4, {{3, 0.5}});
  expect_course(config("cosine", 1), 1, {{0, 1}});
}

TEST(Schedule, has_four_kinds_by_name) {
  EXPECT_EQ(names<ScheduleKind>(),
            (std::vector<std::string>{"cosine", "linear", "constant", "wsd"}));
  EXPECT_FALSE(from_string<ScheduleKind>("cosin"));
}

}  // namespace
}  // namespace difftape
