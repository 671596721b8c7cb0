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

TEST(Study, distinguishes_runs_by_the_values_of_keys_and_not_by_their_origin) {
  const std::vector<Row> runs =
      records({{.seed = 1}, {.seed = 2, .config = {{"model.z_loss_weight", "0"}}}});
  EXPECT_EQ(make_studies(runs).size(), 1u);
  const std::vector<Row> other = records({{.seed = 1, .config = {{"model.z_loss_weight", "1"}}},
                                          {.seed = 2, .config = {{"model.z_loss_weight", "0"}}}});
  EXPECT_EQ(make_studies(other).size(), 2u);
}

TEST(Study, groups_runs_by_arm_rate_and_seed_in_order) {
  const std::vector<Row> runs = records(sweep());
  const Study study = make_study(runs);
  ASSERT_EQ(study.arms.size(), 2u);
  EXPECT_EQ(study.arms[0].name, "softmax");
  EXPECT_EQ(study.arms[1].name, "diff_v2");
  EXPECT_EQ(study.reference(), &study.arms[0]);
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
  EXPECT_EQ(make_studies(runs, "diff_v2")[0].reference()->name, "diff_v2");
  EXPECT_THAT([&] { make_studies(runs, "difv2"); },
              ThrowsMessage<UsageError>("report: no arm is named 'difv2'; did you mean 'diff_v2'?; "
                                        "the arms are softmax, diff_v2"));
  EXPECT_THAT(
      [] { make_studies({}); },
      ThrowsMessage<UsageError>("report: there are no runs; give at least one run directory"));
}

TEST(Study, has_runs_of_an_arm_that_differ_in_learning_rate_and_seed_only) {
  const std::vector<Row> runs = records(
      {{.config = {{"optim.max_grad_norm", "1"}}},
       {.seed = 2, .config = {{"optim.max_grad_norm", "0.5"}}},
       {.seed = 3, .config = {{"log.diagnostics_interval", "7"}, {"optim.min_lr", "1e-5"}}}});
  const std::vector<Study> studies = make_studies(runs);
  ASSERT_EQ(studies.size(), 2u);
  EXPECT_EQ(studies[0].task, "optim.max_grad_norm=1");
  EXPECT_EQ(studies[0].arms[0].name, "softmax");
  EXPECT_EQ(studies[0].arms[0].conditions[0].runs.size(), 2u);
  EXPECT_EQ(studies[1].task, "optim.max_grad_norm=0.5");
}

TEST(Study, of_sizes_has_no_task_for_keys_that_follow_from_the_size) {
  std::vector<Result> results;
  for (const char* size : {"32", "64"})
    for (const char* arm : {"softmax", "diff_v2"})
      results.push_back({.arm = arm,
                         .config = {{"model.d_model", size},
                                    {"model.d_ff", size + std::string(*arm == 's' ? "0" : "2")}}});
  const std::vector<Row> runs = records(results);
  const std::vector<Study> studies = make_studies(runs);
  ASSERT_EQ(studies.size(), 2u);
  EXPECT_EQ(studies[1].task, "d_model 64");
  EXPECT_THAT(studies[1].arm_names(), ElementsAre("softmax", "diff_v2"));
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
  const std::string text = study_text(make_studies(runs), 100);
  EXPECT_THAT(text, HasSubstr("val vs softmax"));
  EXPECT_THAT(text, HasSubstr("decides nothing"));
  EXPECT_THAT(text, Not(HasSubstr("claim")));
  const std::vector<Study> study = make_studies(runs);
  const JudgedClaims answers(some_claims(), pointers(runs));
  EXPECT_THAT(study_text(study, 100, &answers),
              AllOf(HasSubstr("\nnot tested, one seed: no interval: v2_loss\n"),
                    HasSubstr("not tested, no arm is named diff_v1; did you mean"),
                    HasSubstr("not tested, no run of diff_v2 logged attn/sink_rate: v2_sinks\n")));
}

TEST(StudyText, fits_the_terminal) {
  const std::vector<Row> runs = records(sweep());
  for (const std::size_t width : {80u, 100u, 200u}) {
    const std::vector<Study> study = make_studies(runs);
    const JudgedClaims answers(some_claims(), pointers(runs));
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
  return mapped(make_studies(records(results)), &Study::task);
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
  const std::vector<Study> studies = make_studies(runs);
  EXPECT_THAT(mapped(studies, &Study::task), ElementsAre("data aa112233", "data bb"));
  EXPECT_EQ(studies[0].runs().size(), 2u);
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

TEST(Tasks, are_compared_within_themselves) {
  const std::vector<Row> runs = records(short_and_long());
  const std::vector<Study> studies = make_studies(runs);
  EXPECT_THAT(mapped(studies, &Study::task), ElementsAre("20 steps", "40 steps"));
  for (const Study& study : studies) {
    EXPECT_THAT(study.arm_names(), ElementsAre("softmax", "diff_v2"));
    const system::Table table = arm_table(study, lr_curves(study)), single = run_table(study);
    const std::size_t versus = column(table, "final loss vs softmax", "difference");
    EXPECT_EQ(table.rows[0][versus], "-");
    EXPECT_EQ(table.rows[1][versus], "-0.1150") << "a loss after 40 steps says nothing of 20";
    EXPECT_EQ(single.columns[4].name, "val vs softmax");
    EXPECT_EQ(single.rows[3][4], "-0.1200");
  }
  EXPECT_THAT(study_text(studies, 100),
              AllOf(StartsWith("20 steps:\n"), HasSubstr("\n40 steps:\n")));
  EXPECT_THAT(drawn_together(studies).arm_names(),
              ElementsAre("softmax (20 steps)", "diff_v2 (20 steps)", "softmax (40 steps)",
                          "diff_v2 (40 steps)"));
}

TEST(Tasks, without_the_baseline_compare_nothing) {
  std::vector<Result> results = short_and_long();
  results.erase(results.begin() + 4, results.begin() + 6);  // softmax in 40 steps
  const std::vector<Row> runs = records(results);
  const std::vector<Study> studies = make_studies(runs);
  EXPECT_EQ(studies[1].reference(), nullptr);
  for (const system::Column& each : arm_table(studies[1], lr_curves(studies[1])).columns)
    EXPECT_EQ(each.group.find("vs"), std::string::npos) << each.group;
  EXPECT_THAT(tables_text(studies, 200), Not(HasSubstr("-1.1")));
}

}  // namespace
}  // namespace difftape::study
