#include "train/study/compare/tables.h"

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
            "lowest validation loss: softmax 2.0000; left out: b (1 of 1 runs diverged)");
  EXPECT_EQ(answer_of({{.state = running}}), "no run finished: 1 running");
  EXPECT_EQ(answer_of({{.loss = 2}, {.arm = "b", .loss = 1, .state = running}}),
            "so far, lowest validation loss: softmax 2.0000");
}

TEST(Answer, leaves_out_learning_rates_at_which_a_run_diverged) {
  using enum run::RunState;
  const std::vector<Result> softmax = {{.loss = 2}, {.seed = 2, .loss = 2}};
  std::vector<Result> with_v1 = softmax;
  with_v1.push_back({.arm = "v1", .loss = 1.5});
  with_v1.push_back({.arm = "v1", .seed = 2, .loss = 1.5, .state = diverged});
  EXPECT_EQ(answer_of(with_v1),
            "lowest validation loss: softmax 2.0000; left out: v1 (1 of 2 runs diverged)");
  std::vector<Result> twice = with_v1;
  twice.push_back({.arm = "v1", .lr = 1e-2, .loss = 1.4, .state = diverged});
  twice.push_back({.arm = "v1", .lr = 1e-2, .seed = 2, .loss = 1.4});
  EXPECT_EQ(answer_of(twice),
            "lowest validation loss: softmax 2.0000 at learning rate 0.001; left out: v1 (2 of 4 "
            "runs diverged, some at every learning rate)");
  std::vector<Result> once = with_v1;
  once.push_back({.arm = "v1", .lr = 1e-2, .loss = 1.9});
  once.push_back({.arm = "v1", .lr = 1e-2, .seed = 2, .loss = 1.9});
  EXPECT_THAT(answer_of(once),
              testing::StartsWith("lowest validation loss: v1 1.9000 at learning rate 0.01, 0.1000 "
                                  "below softmax at learning rate 0.001; 95 % interval "))
      << "not the 1.5 of the seed that is left at 0.001";
  EXPECT_THAT(answer_of(once), Not(HasSubstr("left out")));
}

TEST(Answer, ranks_no_arm_whose_only_learning_rate_has_a_diverged_run) {
  EXPECT_EQ(answer_of({{.loss = 2}, {.seed = 2, .state = run::RunState::diverged}}),
            "no arm is ranked, since runs of each diverged: softmax (1 of 2 runs diverged)");
}

TEST(Answer, of_several_tasks_is_a_line_each) {
  EXPECT_EQ(
      answer_of(
          {{.loss = 2},
           {.arm = "b", .loss = 1.5},
           {.loss = 1, .config = {{"train.steps", "40"}}},
           {.arm = "b", .state = run::RunState::diverged, .config = {{"train.steps", "80"}}}}),
      "20 steps: lowest validation loss b 1.5000, 0.5000 below softmax (one seed, so no evidence)\n"
      "40 steps: validation loss softmax 1.0000\n"
      "80 steps: no run finished: 1 diverged at 12");
}

TEST(Answer, of_a_task_among_others_is_short_and_explained_below_the_tables) {
  std::vector<Result> results;
  for (const char* steps : {"800", "1600"}) {
    for (const int seed : {1, 2, 3}) {
      for (const double lr : {1e-3, 1e-2}) {
        results.push_back(
            {.lr = lr, .seed = seed, .loss = 2 + lr, .config = {{"train.steps", steps}}});
        results.push_back({.arm = "v2_no_lambda",
                           .lr = lr,
                           .seed = seed,
                           .loss = 1.9 + lr + 0.01 * seed,
                           .config = {{"train.steps", steps}}});
      }
    }
  }
  // Differences 0.09, 0.08, 0.07: 0.08 +- 4.3027 * 0.01 / sqrt(3).
  const std::string line =
      "800 steps: lowest validation loss v2_no_lambda 1.9210, 0.0800 below softmax (0.0552 to "
      "0.1048, n 3)\n";
  EXPECT_THAT(answer_of(results), testing::StartsWith(line));
  EXPECT_LE(line.size(), 100u);
  const std::vector<RunRecord> runs = records(results);
  const std::string text = study_text(make_study(runs), 400);
  EXPECT_THAT(text, testing::StartsWith(line + "1600 steps: lowest validation loss "));
  EXPECT_THAT(text, HasSubstr("in brackets the 95 %"));
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
