#include "train/study/compare/study.h"

#include "tests/train/study/compare/claims/two_arms.h"
#include "tests/train/study/compare/synthetic_study.h"
#include "train/study/compare/claims/output.h"
#include "train/study/compare/lr_curves.h"
#include "train/study/compare/tables.h"

namespace difftape::study {
namespace {

/// Returns two arms at two learning rates with three seeds: losses 2.3 and 2.4, or 0.05 lower, plus
/// 0.01 per seed.
std::vector<Result> sweep() {
  std::vector<Result> results;
  for (const char* arm : {"softmax", "diff_v2"}) {
    for (const double lr : {1e-2, 1e-3}) {
      for (const int seed : {3, 1, 2}) {
        const bool v2 = std::string(arm) == "diff_v2";
        const double loss = (lr == 1e-3 ? 2.3 : 2.4) - (v2 ? 0.05 + 0.001 * seed : 0) + 0.01 * seed;
        Result result{.arm = arm, .lr = lr, .seed = seed, .loss = loss};
        if (v2) result.attention = {{"kind", "diff_v2"}};
        results.push_back(result);
      }
    }
  }
  return results;
}

std::size_t column(const system::Table& table, const std::string& group, const std::string& name) {
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].group == group && table.columns[c].name == name) return c;
  }
  ADD_FAILURE() << "no column " << group << " " << name;
  return 0;
}

TEST(Study, distinguishes_arms_by_the_values_of_keys_and_not_by_their_origin) {
  const std::vector<Row> runs =
      records({{.seed = 1}, {.seed = 2, .config = {{"model.z_loss_weight", "0"}}}});
  EXPECT_EQ(make_study(runs).arms.size(), 1u);
  const std::vector<Row> other = records({{.seed = 1, .config = {{"model.z_loss_weight", "1"}}},
                                          {.seed = 2, .config = {{"model.z_loss_weight", "0"}}}});
  EXPECT_EQ(make_study(other).arms.size(), 2u);
}

TEST(Study, groups_runs_by_arm_rate_and_seed_in_order) {
  const std::vector<Row> runs = records(sweep());
  const Study study = make_study(runs);
  ASSERT_EQ(study.arms.size(), 2u);
  EXPECT_EQ(study.arms[0].name, "softmax");
  EXPECT_EQ(study.arms[1].name, "diff_v2");
  EXPECT_EQ(study.baseline, 0u);
  for (const Arm& arm : study.arms) {
    ASSERT_EQ(arm.conditions.size(), 2u);
    EXPECT_EQ(arm.conditions[0].lr, 1e-3) << "learning rates ascend";
    EXPECT_EQ(arm.conditions[1].lr, 1e-2);
    for (const Condition& condition : arm.conditions) {
      ASSERT_EQ(condition.runs.size(), 3u);
      for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(condition.runs[i]->seed, i + 1);
    }
  }
}

TEST(Study, uses_the_named_baseline_and_lists_the_arms_for_an_unknown_one) {
  const std::vector<Row> runs = records(sweep());
  EXPECT_EQ(make_study(runs, "diff_v2").baseline, 1u);
  EXPECT_THAT([&] { make_study(runs, "difv2"); },
              ThrowsMessage<UsageError>("report: no arm is named 'difv2'; did you mean 'diff_v2'?; "
                                        "the arms are softmax, diff_v2"));
  EXPECT_THAT(
      [] { make_study({}); },
      ThrowsMessage<UsageError>("report: there are no runs; give at least one run directory"));
}

TEST(Study, splits_arms_whose_runs_differ_in_more_than_the_seed) {
  const std::vector<Row> runs = records(
      {{.config = {{"optim.max_grad_norm", "1"}}},
       {.seed = 2, .config = {{"optim.max_grad_norm", "0.5"}}},
       {.seed = 3, .config = {{"log.diagnostics_interval", "7"}, {"optim.min_lr", "1e-5"}}}});
  const Study study = make_study(runs);
  ASSERT_EQ(study.arms.size(), 2u);
  EXPECT_EQ(study.arms[0].name, "softmax optim.max_grad_norm=1");
  EXPECT_EQ(study.arms[0].conditions[0].runs.size(), 2u);
  EXPECT_EQ(study.arms[1].name, "softmax optim.max_grad_norm=0.5");
}

TEST(Study, does_not_count_a_repetition_with_the_same_seed) {
  std::vector<Row> runs = records({{}, {}});
  runs[1].dir = "runs/again";
  const Study study = make_study(runs);
  ASSERT_EQ(study.arms.size(), 2u);
  EXPECT_EQ(study.arms[1].name, "runs/again");
  EXPECT_EQ(study.arms[0].conditions[0].runs.size(), 1u);
}

TEST(LrCurves, cap_diverged_runs_at_the_loss_of_a_uniform_guess) {
  std::vector<Result> results = sweep();
  results[0].state = run::RunState::diverged;  // softmax, 1e-2, seed 3
  results[1].loss = 9;                         // seed 1: worse than a guess
  const std::vector<Row> runs = records(results);
  const std::vector<LrCurve> curves = lr_curves(make_study(runs));
  const LrPoint& large = curves[0].points[1];
  EXPECT_EQ(large.runs, 3);
  EXPECT_EQ(large.diverged, 1);
  EXPECT_THAT(large.values, ElementsAre(std::log(256.0), 2.42, std::log(256.0)));
  EXPECT_DOUBLE_EQ(large.loss.mean, (2 * std::log(256.0) + 2.42) / 3);
  const double small = 2.32;
  EXPECT_NEAR(curves[0].sensitivity.mean, (large.loss.mean - small) / 2, 1e-12);
  EXPECT_LT(curves[0].sensitivity_limits.low, curves[0].sensitivity.mean);
  EXPECT_GT(curves[0].sensitivity_limits.high, curves[0].sensitivity.mean);
  EXPECT_DOUBLE_EQ(2 * curves[0].sensitivity.half_width,
                   curves[0].sensitivity_limits.high - curves[0].sensitivity_limits.low);
}

TEST(LrCurves, skip_runs_in_progress) {
  std::vector<Result> results = sweep();
  results[0].state = run::RunState::running;
  for (const int i : {3, 4, 5}) results[static_cast<std::size_t>(i)].state = run::RunState::failed;
  const std::vector<Row> runs = records(results);
  const LrCurve curve = lr_curves(make_study(runs))[0];
  ASSERT_EQ(curve.points.size(), 1u) << "a learning rate without an ended run is not a point";
  EXPECT_EQ(curve.points[0].lr, 1e-2);
  EXPECT_EQ(curve.points[0].runs, 2);
  EXPECT_TRUE(std::isnan(curve.sensitivity.mean)) << "one learning rate";
}

TEST(LrCurves, of_one_seed_have_no_interval_and_of_diverged_runs_no_sensitivity) {
  std::vector<Result> results = {{.lr = 1e-3}, {.lr = 1e-2, .loss = 2.5}};
  std::vector<Row> runs = records(results);
  LrCurve curve = lr_curves(make_study(runs))[0];
  EXPECT_DOUBLE_EQ(curve.sensitivity.mean, (2.5 - 2.3) / 2);
  EXPECT_TRUE(std::isnan(curve.sensitivity_limits.low));
  EXPECT_TRUE(std::isnan(curve.points[0].loss.half_width));
  for (Result& result : results) result.state = run::RunState::diverged;
  runs = records(results);
  curve = lr_curves(make_study(runs))[0];
  EXPECT_EQ(curve.points[0].diverged, 1);
  EXPECT_TRUE(std::isnan(curve.sensitivity.mean));
}

TEST(LrTable, shows_diverged_counts_and_why_there_is_no_optimum) {
  std::vector<Result> results = sweep();
  for (const std::size_t i : {0u, 1u, 2u, 3u, 4u, 5u}) results[i].state = run::RunState::diverged;
  results[6].state = run::RunState::diverged;
  const std::vector<Row> runs = records(results);
  const std::vector<LrCurve> curves = lr_curves(make_study(runs));
  const system::Table table = lr_table(curves);
  EXPECT_EQ(table.rows[0][0], "softmax");
  EXPECT_EQ(table.rows[0][column(table, "", "diverged")], "6 of 6");
  EXPECT_EQ(table.rows[0][column(table, "lr sensitivity", "E")], "-");
  EXPECT_EQ(table.rows[1][column(table, "", "diverged")], "1 of 6");
  EXPECT_EQ(table.rows[1][column(table, "lr*", "lr")], "-");
  const std::string why = " has no lr*: the ladder has 2 learning rates, but a parabola needs 3.";
  EXPECT_THAT(lr_refusals(curves), ElementsAre("softmax" + why, "diff_v2" + why));
}

TEST(StudyText, of_single_runs_compares_them_without_claims) {
  const std::vector<Row> runs =
      records({{}, {.arm = "diff_v2", .attention = {{"kind", "diff_v2"}}, .loss = 2.2}});
  const std::string text = study_text(make_study(runs), 100);
  EXPECT_THAT(text, HasSubstr("val vs softmax"));
  EXPECT_THAT(text, HasSubstr("decides nothing"));
  EXPECT_THAT(text, Not(HasSubstr("claim")));
  const Study study = make_study(runs);
  const JudgedClaims answers(some_claims(), study.runs());
  EXPECT_THAT(study_text(study, 100, &answers),
              AllOf(HasSubstr("\nnot tested, one seed: no interval: v2_loss\n"),
                    HasSubstr("not tested, no arm is named diff_v1; did you mean"),
                    HasSubstr("not tested, no run of diff_v2 logged attn/sink_rate: v2_sinks\n")));
}

TEST(StudyText, fits_the_terminal) {
  const std::vector<Row> runs = records(sweep());
  for (const std::size_t width : {80u, 100u, 200u}) {
    const Study study = make_study(runs);
    const JudgedClaims answers(some_claims(), study.runs());
    const std::string text = study_text(study, width, &answers);
    std::size_t longest = 0, begin = 0;
    for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
      longest = std::max(longest, end - begin);
    }
    EXPECT_LE(longest, width) << text;
    EXPECT_THAT(text, HasSubstr("lr sensitivity"));
    EXPECT_THAT(text, HasSubstr("6 finished"));
  }
}

using Config = std::map<std::string, std::string>;

std::vector<std::string> words_of(const std::vector<Config>& configs) {
  std::vector<Result> results;
  for (const Config& config : configs) results.push_back({.config = config});
  return find_tasks(records(results)).words;
}

TEST(Tasks, are_described_by_the_fewest_distinguishing_keys) {
  EXPECT_THAT(words_of({{}, {{"optim.lr", "7"}}}), ElementsAre("")) << "a rate is not a task";
  EXPECT_THAT(words_of({{}, {{"train.steps", "40"}}}), ElementsAre("20 steps", "40 steps"));
  EXPECT_THAT(words_of({{}, {{"data.seq_len", "64"}}}),
              ElementsAre("sequences of 256", "sequences of 64"));
  EXPECT_THAT(words_of({{}, {{"model.vocab_size", "300"}}}),
              ElementsAre("model.vocab_size=256", "model.vocab_size=300"));
  EXPECT_THAT(
      words_of({{}, {{"data.type", "needles"}, {"data.seq_len", "64"}, {"train.steps", "40"}}}),
      ElementsAre("text", "needles"));
  const Config four = {{"data.batch_size", "4"}};
  EXPECT_THAT(
      words_of(
          {four, {{"data.batch_size", "4"}, {"train.steps", "40"}}, {{"data.batch_size", "8"}}}),
      ElementsAre("20 steps, batches of 4", "40 steps, batches of 4", "20 steps, batches of 8"));
}

TEST(Tasks, of_equal_keys_differ_by_the_digest_of_the_data) {
  std::vector<Row> runs = records({{}, {}, {}});
  runs[0].facts["data"] = "aa1122334455";
  runs[1].facts["data"] = "bb";
  runs[2].facts["data"] = "aa1122334455";
  const Tasks tasks = find_tasks(runs);
  EXPECT_THAT(tasks.words, ElementsAre("data aa112233", "data bb"));
  EXPECT_THAT(tasks.of_run, ElementsAre(0, 1, 0));
}

/// Returns softmax and diff_v2 with two seeds, for 20 and 40 steps; the long runs end 1 lower.
std::vector<Result> short_and_long() {
  std::vector<Result> results;
  for (const char* steps : {"20", "40"}) {
    for (const char* arm : {"softmax", "diff_v2"}) {
      for (const int seed : {1, 2}) {
        const bool is_long = steps == std::string("40"), v2 = arm == std::string("diff_v2");
        Result result{.arm = arm,
                      .seed = seed,
                      .loss = (is_long ? 1.3 : 2.3) - (v2 ? 0.1 + 0.01 * seed : 0),
                      .config = {{"train.steps", steps}}};
        if (v2) result.attention = {{"kind", "diff_v2"}};
        results.push_back(result);
      }
    }
  }
  return results;
}

TEST(Tasks, split_arms_which_are_compared_with_the_baseline_of_the_same_task) {
  const std::vector<Row> runs = records(short_and_long());
  const Study study = make_study(runs);
  std::vector<std::string> names;
  for (const Arm& arm : study.arms) names.push_back(arm.name);
  ASSERT_THAT(names, ElementsAre("softmax (20 steps)", "diff_v2 (20 steps)", "softmax (40 steps)",
                                 "diff_v2 (40 steps)"));
  EXPECT_THAT(study.tasks, ElementsAre("20 steps", "40 steps"));
  EXPECT_EQ(study.baseline_of(study.arms[1]), &study.arms[0]);
  EXPECT_EQ(study.baseline_of(study.arms[2]), &study.arms[2]);
  EXPECT_EQ(study.baseline_of(study.arms[3]), &study.arms[2]);
  EXPECT_EQ(make_study(runs, "diff_v2").baseline, 1u);
  EXPECT_EQ(make_study(runs, "diff_v2 (40 steps)").baseline, 3u);
  const system::Table table = arm_table(study, lr_curves(study)), single = run_table(study);
  const auto column = [](const system::Table& of, const std::string& group) {
    return static_cast<std::size_t>(std::ranges::find(of.columns, group, &system::Column::group) -
                                    of.columns.begin());
  };
  const std::size_t versus = column(table, "final loss vs softmax");
  EXPECT_EQ(table.rows[0][versus], "-");
  EXPECT_EQ(table.rows[1][versus], "-0.1150");
  EXPECT_EQ(table.rows[2][versus], "-") << "a loss after 40 steps says nothing of one after 20";
  EXPECT_EQ(table.rows[3][versus], "-0.1150");
  EXPECT_EQ(single.columns[4].name, "val vs softmax");
  EXPECT_EQ(single.rows[7][4], "-0.1200");
  const std::string text = study_text(study, 100);
  EXPECT_THAT(text,
              HasSubstr("The runs have 2 tasks (20 steps; 40 steps). An arm is compared with"));
}

TEST(Tasks, without_the_baseline_compare_nothing) {
  std::vector<Result> results = short_and_long();
  results.erase(results.begin() + 4, results.begin() + 6);  // softmax in 40 steps
  const std::vector<Row> runs = records(results);
  const Study study = make_study(runs);
  EXPECT_EQ(study.baseline_of(study.arms[2]), nullptr);
  EXPECT_THAT(arm_table(study, lr_curves(study)).rows[2], testing::Contains("-"));
  EXPECT_THAT(tables_text(study, 200), Not(HasSubstr("-1.1")));
}

TEST(Tasks, find_the_baseline_by_its_configuration_or_else_by_its_name) {
  std::vector<Result> results = short_and_long();
  for (Result& result : results) {
    if (result.config["train.steps"] == "40") result.arm += "_long";
  }
  std::vector<Row> runs = records(results);
  EXPECT_EQ(make_study(runs).baseline_of(make_study(runs).arms[3])->name, "softmax_long (40 steps)")
      << "configured as the baseline is";
  results = short_and_long();
  for (Result& result : results) {
    if (result.config["train.steps"] == "40") result.config["optim.warmup_steps"] = "4";
  }
  runs = records(results);
  const Study study = make_study(runs);
  EXPECT_EQ(study.baseline_of(study.arms[3]), &study.arms[2]) << "its name";
}

TEST(Tasks, can_be_studied_separately) {
  const std::vector<Row> runs = records(short_and_long());
  EXPECT_EQ(make_study(runs).of_task(1).arms[0].name, "softmax (40 steps)");
}

}  // namespace
}  // namespace difftape::study
