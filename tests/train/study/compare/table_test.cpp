#include "train/study/compare/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace difftape::study {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<RunSummary> three_runs() {
  RunSummary softmax{
      .name = "softmax",
      .status = {.state = run::RunState::finished, .step = 500, .steps = 500, .parameters = 820224},
      .train_loss = 2.29153,
      .val_loss = 2.33114,
      .spike_score_loss = 0,
      .spike_score_grad = 0.2,
      .grad_norm_median = 0.4241,
      .grad_norm_p99 = 2.408,
      .grad_norm_max = 15718,
      .grad_norm_late_variance = 0.00328,
      .tokens_per_sec = 41018};
  RunSummary v1 = softmax, v2 = softmax;
  v1.name = "diff_v1";
  v1.status.state = run::RunState::diverged;
  v1.status.step = 400;
  v1.status.diverged = run::Divergence{400, "train/loss", ""};
  v1.train_loss = v1.val_loss = kNaN;
  v2.name = "diff_v2";
  v2.status.parameters = 1853504;
  v2.val_loss = 2.31;
  return {softmax, v1, v2};
}

TEST(ComparisonTable, is_aligned_text_with_the_difference_to_the_baseline) {
  EXPECT_EQ("\n" + comparison_table(three_runs()), R"(
                     ------------ loss ------------   spike score %   ----------- grad_norm -----------
run      parameters   train     val  val vs softmax       loss  grad  median    p99       max  late var  tokens/s  state
softmax     820,224  2.2915  2.3311               -       0.00  0.20   0.424  2.408  1.57e+04  3.28e-03    41,018  finished
diff_v1     820,224       -       -               -       0.00  0.20   0.424  2.408  1.57e+04  3.28e-03    41,018  diverged at step 400 (train/loss)
diff_v2   1,853,504  2.2915  2.3100         -0.0211       0.00  0.20   0.424  2.408  1.57e+04  3.28e-03    41,018  finished
Each row is one run. Published runs of this size differ by 0.004 to 0.035 nats either way: a
difference as small as that decides nothing.
)");
}

TEST(ComparisonTable, says_that_small_differences_of_single_runs_decide_nothing) {
  const std::vector<RunSummary> runs = three_runs();
  EXPECT_THAT(comparison_table(runs), testing::HasSubstr("decides nothing"));
  EXPECT_THAT(comparison_table({runs.data(), 1}),
              testing::Not(testing::HasSubstr("decides nothing")));
}

TEST(ComparisonTable, compares_with_the_run_that_is_asked_for) {
  const system::Table table = compare(three_runs(), 2);
  EXPECT_EQ(table.columns[4].name, "val vs diff_v2");
  EXPECT_EQ(table.rows[0][4], "+0.0211");
  EXPECT_EQ(table.rows[2][4], "-");
}

TEST(ComparisonTable, has_a_dash_where_there_is_no_number) {
  std::vector<RunSummary> runs = three_runs();
  runs[0].tokens_per_sec = runs[0].grad_norm_median = kNaN;
  const system::Table table = compare(runs);
  EXPECT_EQ(table.rows[0][7], "-");
  EXPECT_EQ(table.rows[0][11], "-");
}

TEST(DescribeState, says_how_far_a_run_got) {
  run::RunStatus status{.state = run::RunState::running, .step = 20, .steps = 500};
  EXPECT_EQ(describe_state(status), "running 20/500");
  status.state = run::RunState::stopped;
  EXPECT_EQ(describe_state(status), "stopped at step 20");
  status.state = run::RunState::failed;
  EXPECT_EQ(describe_state(status), "failed at step 20");
  status.state = run::RunState::diverged;
  status.diverged = run::Divergence{20, "train/loss", "lm_head.weight"};
  EXPECT_EQ(describe_state(status), "diverged at step 20 (train/loss)");
  status.diverged->op = "exp in model.layers.0, forward";
  EXPECT_EQ(describe_state(status),
            "diverged at step 20 (train/loss), first op: exp in model.layers.0, forward");
}

}  // namespace
}  // namespace difftape::study
