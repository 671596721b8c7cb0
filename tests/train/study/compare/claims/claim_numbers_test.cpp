// The numbers that claims compare, and of which runs they are.
#include <gtest/gtest.h>

#include "tests/train/study/compare/claims/simulated_study.h"
#include "train/study/compare/curves.h"

namespace difftape::study {
namespace {

using test::record;
using test::Result;

TEST(Claims, rates_that_train_are_none_for_an_arm_that_diverged_before_it_was_validated) {
  std::vector<Result> results;
  for (const char* arm : {"base", "v2"}) {
    for (const double lr : {1e-3, 1e-2}) {
      for (const int seed : {1, 2, 3}) {
        const bool diverged = arm == std::string("base");
        results.push_back({.arm = arm,
                           .attention = kArms.at(arm),
                           .lr = lr,
                           .seed = seed,
                           .state = diverged ? run::RunState::diverged : run::RunState::finished});
      }
    }
  }
  const std::vector<RunRecord> runs = test::records(results);
  ASSERT_FALSE(has_metric(runs[0].metrics, "val/loss"));
  const std::vector<ClaimResult> evaluated = evaluate(make_study(runs));
  const TestResult rates = result_of(evaluated, "v2_rates").tests[0];
  EXPECT_EQ(rates.reason, "");
  EXPECT_EQ(rates.comparison.against, 0);
  EXPECT_EQ(rates.comparison.arm, 2);
  EXPECT_EQ(verdict(runs, "v2_loss_equal"), "not tested: no run of base logged val/loss");
}

TEST(Claims, unstable_steps_count_what_a_diverged_run_never_reached) {
  const std::vector<RunRecord> runs =
      test::records({{.lr = 1e-3, .spike_score = 2},
                     {.lr = 1e-2, .state = run::RunState::diverged, .diverged_at = 5}});
  const std::vector<const RunRecord*> of_one_seed{&runs[0], &runs[1]};
  EXPECT_DOUBLE_EQ(quantity("unstable_steps").of_seed(of_one_seed), (3 + 75) / 2.0);
  EXPECT_EQ(quantity("stable_lrs").of_seed(of_one_seed), 1);
  EXPECT_DOUBLE_EQ(quantity("lr_sensitivity").of_seed(of_one_seed), (5.5 - 2.3) / 2);
}

TEST(Claims, growth_is_the_exponent_of_the_second_half) {
  const RunRecord flat = record({}), growing = record({.late_growth = 1.5});
  EXPECT_NEAR(compared_number(growing, quantity("grad_norm_growth")) -
                  compared_number(flat, quantity("grad_norm_growth")),
              1.5, 1e-9);
  EXPECT_TRUE(std::isnan(
      compared_number(record({.state = run::RunState::diverged}), quantity("grad_norm_growth"))));
}

TEST(Claims, numbers_of_layers_come_from_the_last_step_and_only_from_layers) {
  const RunRecord run = record({.last = {{"attn/logit_max/0", 3},
                                         {"attn/logit_max/11", 7},
                                         {"attn/logit_max/x", 99},
                                         {"attn/logit_maximum/0", 99},
                                         {"act/kurtosis/0", 1},
                                         {"act/kurtosis/1", 2}},
                                .first = {{"attn/logit_max/0", 50}}});
  EXPECT_EQ(compared_number(run, quantity("attention_logit")), 7);
  EXPECT_EQ(compared_number(run, quantity("kurtosis")), 1.5);
  EXPECT_TRUE(std::isnan(compared_number(run, quantity("hidden_state"))));
}

}  // namespace
}  // namespace difftape::study
