#include "train/study/compare/answer.h"

#include <gmock/gmock.h>

#include "tests/train/study/compare/synthetic_study.h"
#include "train/study/compare/claims/output.h"

namespace difftape::study {
namespace {

using test::records;
using test::Result;
using testing::HasSubstr;
using testing::Not;

std::string answer_of(const std::vector<Result>& results, const std::string& baseline = "") {
  const std::vector<RunRecord> runs = records(results);
  return answer(make_study(runs, baseline));
}

TEST(Answer, of_one_seed_is_no_evidence) {
  EXPECT_EQ(
      answer_of({{.loss = 1.7948}, {.arm = "diff_v2", .loss = 1.7388}}),
      "lowest validation loss: diff_v2 1.7388, 0.0560 below softmax; one seed, so no evidence");
}

TEST(Answer, of_a_baseline_that_is_lowest_names_the_next) {
  EXPECT_EQ(answer_of({{.loss = 1.7}, {.arm = "diff_v1", .loss = 1.9}, {.arm = "b", .loss = 1.8}}),
            "lowest validation loss: softmax 1.7000, 0.1000 below b; one seed, so no evidence");
}

TEST(Answer, of_several_seeds_is_the_paired_difference_with_its_interval) {
  std::vector<Result> results;
  for (const int seed : {1, 2, 3}) {
    results.push_back({.seed = seed, .loss = 2 + 0.1 * seed});
    results.push_back({.arm = "diff_v2", .seed = seed, .loss = 1.95 + 0.1 * seed - 0.001 * seed});
  }
  // Differences 0.051, 0.052, 0.053: 0.052 +- 4.3027 * 0.001 / sqrt(3).
  EXPECT_EQ(answer_of(results),
            "lowest validation loss: diff_v2 2.1480, 0.0520 below softmax; "
            "95 % interval 0.0495 to 0.0545, n 3");
  for (Result& result : results) {
    if (result.arm == "diff_v2" && result.seed == 1) result.loss += 0.1;
  }
  EXPECT_THAT(answer_of(results), HasSubstr(", n 3, so no difference is shown"));
}

TEST(Answer, pairs_the_seeds_that_both_arms_have) {
  const std::vector<Result> apart = {{.seed = 1, .loss = 2}, {.arm = "b", .seed = 2, .loss = 1.5}};
  EXPECT_EQ(answer_of(apart),
            "lowest validation loss: b 1.5000, 0.5000 below softmax; no seed in common, so no "
            "evidence");
  const std::vector<Result> one = {
      {.seed = 1, .loss = 2}, {.seed = 2, .loss = 3}, {.arm = "b", .seed = 2, .loss = 1.5}};
  EXPECT_THAT(answer_of(one), HasSubstr(", 1.5000 below softmax; one seed, so no evidence"));
}

TEST(Answer, of_a_sweep_says_at_which_rates_and_that_they_were_chosen) {
  std::vector<Result> results;
  for (const int seed : {1, 2}) {
    for (const double lr : {1e-3, 1e-2}) {
      results.push_back({.lr = lr, .seed = seed, .loss = lr == 1e-3 ? 2.0 : 2.2});
      results.push_back(
          {.arm = "b", .lr = lr, .seed = seed, .loss = (lr == 1e-3 ? 2.1 : 1.9) + 0.01 * seed});
    }
  }
  EXPECT_THAT(answer_of(results),
              HasSubstr("lowest validation loss: b 1.9150 at learning rate 0.01, 0.0850 below "
                        "softmax at learning rate 0.001; 95 % interval "));
  EXPECT_THAT(answer_of(results), HasSubstr(", uncorrected for the choice, n 2"));
}

TEST(Answer, of_failed_runs_says_so) {
  using enum run::RunState;
  EXPECT_EQ(answer_of({{.state = diverged}, {.arm = "b", .state = diverged}}),
            "no run finished: 2 diverged at 12, 12");
  EXPECT_EQ(answer_of({{.loss = 2}, {.arm = "b", .state = diverged}}),
            "lowest validation loss: softmax 2.0000; all runs of b diverged");
  EXPECT_EQ(answer_of({{.state = running}}), "no run finished: 1 running");
  EXPECT_EQ(answer_of({{.loss = 2}, {.arm = "b", .loss = 1, .state = running}}),
            "so far, lowest validation loss: softmax 2.0000");
}

TEST(Answer, of_several_tasks_is_one_each) {
  EXPECT_EQ(
      answer_of(
          {{.loss = 2},
           {.arm = "b", .loss = 1.5},
           {.loss = 1, .config = {{"train.steps", "40"}}},
           {.arm = "b", .state = run::RunState::diverged, .config = {{"train.steps", "80"}}}}),
      "lowest validation loss: b (20 steps) 1.5000, 0.5000 below softmax (20 steps); one "
      "seed, so no evidence. validation loss: softmax (40 steps) 1.0000. 80 steps: no run "
      "finished: 1 diverged at 12");
}

TEST(Answer, of_a_single_run_compares_nothing) {
  const std::vector<RunRecord> runs = records({{.loss = 1.7388}});
  EXPECT_EQ(answer(make_study(runs)), "validation loss: softmax 1.7388");
  const std::string text = study_text(make_study(runs), 100);
  EXPECT_THAT(text, testing::StartsWith("validation loss: softmax 1.7388\n\n"));
  EXPECT_THAT(text, Not(HasSubstr("not tested")));
}

}  // namespace
}  // namespace difftape::study
