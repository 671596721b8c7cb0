#include "train/study/compare/tables.h"

#include "tests/train/study/compare/synthetic_study.h"
#include "train/study/compare/claims/output.h"
#include "train/study/compare/lr_curves.h"
#include "train/study/compare/quantities.h"

namespace difftape::study {
namespace {

Row run_of(const std::string& name, const std::map<std::string, double>& numbers) {
  Row run;
  run.name = run.arm = name;
  run.status = {.state = run::RunState::finished, .step = 500, .steps = 500, .parameters = 820224};
  for (const Quantity& each : quantities()) {
    const auto found = numbers.find(each.name);
    run.numbers.push_back(found == numbers.end() ? kNaN : found->second);
  }
  return run;
}

void set(Row& run, const char* name, double value) {
  run.numbers[static_cast<std::size_t>(&quantity(name) - quantities().data())] = value;
}

std::vector<Row> three_runs() {
  const Row softmax = run_of("softmax", {{"train_loss", 2.29153},
                                         {"val_loss", 2.33114},
                                         {"loss_spikes", 0},
                                         {"grad_spikes", 2},
                                         {"grad_norm_median", 0.4241},
                                         {"grad_norm_p99", 2.408},
                                         {"grad_norm_max", 15718},
                                         {"grad_norm_sd_over_median", 0.328},
                                         {"tokens_per_sec", 41018}});
  Row v1 = softmax, v2 = softmax;
  v1.name = v1.arm = "diff_v1";
  v1.status.state = run::RunState::diverged;
  v1.status.step = 400;
  v1.status.diverged = run::Divergence{400, "train/loss", ""};
  set(v1, "train_loss", kNaN);
  set(v1, "val_loss", kNaN);
  v2.name = v2.arm = "diff_v2";
  v2.status.parameters = 1853504;
  set(v2, "val_loss", 2.31);
  return {softmax, v1, v2};
}

/// A study with one run per arm.
Study study_of(const std::vector<Row>& runs) {
  Study study{.baseline = runs.front().arm};
  for (const Row& run : runs) study.arms.push_back({run.arm, {{run.lr, {&run}}}});
  return study;
}

std::size_t column(const system::Table& table, const std::string& name) {
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].name == name) return c;
  }
  ADD_FAILURE() << "no column " << name;
  return 0;
}

TEST(RunTable, as_text_is_aligned_with_the_difference_to_the_baseline) {
  const std::vector<Row> runs = three_runs();
  EXPECT_EQ("\n" + tables_text(std::vector{study_of(runs)}, 80), R"(
                     ------------ loss ------------  - spikes -  ----------- grad_norm ------------
run      parameters   train     val  val vs softmax  loss  grad  median    p99       max  sd/median  tokens/s  state
softmax     820,224  2.2915  2.3311               -   0.0   2.0   0.424  2.408  1.57e+04      0.328    41,018  finished
diff_v1     820,224       -       -               -   0.0   2.0   0.424  2.408  1.57e+04      0.328    41,018  diverged at step 400 (train/loss)
diff_v2   1,853,504  2.2915  2.3100         -0.0211   0.0   2.0   0.424  2.408  1.57e+04      0.328    41,018  finished
Losses are in nats per byte; val is the loss of the last validation. train is
the mean over the last 5 % of the steps. "val vs" is the difference from the
baseline, paired by seed. Spikes are steps far outside the range of the steps
before them, counted after the first 10 % of a run. sd/median is the standard
deviation of grad_norm divided by its median in the second half of a run, up to
where the learning rate falls.
Each row is one run. One seed has no interval and decides nothing, however large
the difference.
)");
}

TEST(RunTable, explains_that_single_runs_decide_nothing) {
  std::vector<Row> runs = three_runs();
  EXPECT_THAT(tables_text(std::vector{study_of(runs)}, 80), HasSubstr("decides nothing"));
  runs.resize(1);
  EXPECT_THAT(tables_text(std::vector{study_of(runs)}, 80), Not(HasSubstr("decides nothing")));
  EXPECT_THAT(tables_text(std::vector{study_of(runs)}, 80), Not(HasSubstr("vs")))
      << "it has no baseline";
}

TEST(RunTable, compares_runs_with_the_same_seed) {
  std::vector<Row> runs = three_runs();
  runs[2].seed = runs[0].seed + 1;
  const system::Table table = run_table(study_of(runs));
  for (const system::Column& each : table.columns) EXPECT_NE(each.name, "val vs softmax");
}

TEST(RunTable, compares_with_the_named_baseline) {
  const std::vector<Row> runs = three_runs();
  Study study = study_of(runs);
  study.baseline = "diff_v2";
  const system::Table table = run_table(study);
  EXPECT_EQ(table.rows[0][column(table, "val vs diff_v2")], "+0.0211");
  EXPECT_EQ(table.rows[2][column(table, "val vs diff_v2")], "-");
}

TEST(RunTable, has_a_column_per_selected_quantity_and_a_dash_without_a_number) {
  std::vector<Row> runs = three_runs();
  for (const Quantity& each : quantities()) set(runs[0], each.name, kNaN);
  const system::Table table = run_table(study_of(runs));
  std::vector<std::string> heads{"run", "parameters"};
  for (const Quantity& each : quantities()) {
    if (!(each.column.tables & kRunTable)) continue;
    EXPECT_EQ(table.rows[0].at(heads.size()), "-") << each.name;
    EXPECT_EQ(table.rows[2].at(heads.size()), written(runs[2].number(each), each.column.format));
    heads.emplace_back(each.column.head);
  }
  heads.emplace_back("state");
  ASSERT_EQ(table.columns.size(), heads.size());
  for (std::size_t i = 0; i < heads.size(); ++i) EXPECT_EQ(table.columns[i].name, heads[i]);
}

/// Returns two arms of four seeds at one learning rate; diff_v2 is lower by slightly over 0.05.
std::vector<Result> four_seeds() {
  std::vector<Result> results;
  for (const int seed : {1, 2, 3, 4}) {
    results.push_back({.seed = seed, .loss = 2.3 + 0.01 * seed});
    results.push_back({.arm = "diff_v2", .seed = seed, .loss = 2.25 + 0.011 * seed});
  }
  return results;
}

/// Returns the cell of an arm in a column of the table of arms.
std::string cell(const std::vector<Result>& results, const std::string& arm,
                 const std::string& group, const std::string& name) {
  const std::vector<Row> runs = records(results);
  const Study study = make_study(runs);
  const system::Table table = arm_table(study, lr_curves(study));
  const auto row = std::ranges::find(table.rows, arm, [](const auto& each) { return each[0]; });
  for (std::size_t c = 0; row != table.rows.end() && c < table.columns.size(); ++c)
    if (table.columns[c].group == group && table.columns[c].name == name) return (*row)[c];
  return "no such cell";
}

TEST(ArmTable, has_the_difference_to_the_baseline_with_its_interval) {
  const auto at = [](const char* name) {
    return cell(four_seeds(), "diff_v2", "final loss vs softmax", name);
  };
  // Differences -0.049, -0.048, -0.047, -0.046: scipy.stats.t.interval gives -0.0475 +- 0.00205.
  EXPECT_EQ(at("difference"), "-0.0475");
  EXPECT_EQ(at("low"), "-0.0496");
  EXPECT_EQ(at("high"), "-0.0454");
  EXPECT_EQ(at("pairs"), "4");
  EXPECT_EQ(cell(four_seeds(), "softmax", "final loss vs softmax", "difference"), "-");
  EXPECT_EQ(cell(four_seeds(), "softmax", "final loss", "mean"), "2.3250");
}

TEST(ArmTable, compares_arms_that_have_their_own_rates) {
  std::vector<Result> results = four_seeds();
  for (Result& each : results) each.lr = each.arm == "diff_v2" ? 2e-3 : 1e-3;
  EXPECT_EQ(cell(results, "diff_v2", "final loss vs softmax", "difference"), "-0.0475");
  EXPECT_EQ(cell(results, "diff_v2", "", "lr"), "0.002");
  EXPECT_EQ(cell(results, "diff_v2", "", "chosen from"), "no such cell") << "nothing was chosen";
}

TEST(ArmTable, shows_a_swept_arm_at_its_best_rate_and_says_so) {
  std::vector<Result> results = four_seeds();
  for (const Result& each : four_seeds()) {
    Result more = each;
    more.lr = 1e-2;
    more.loss += each.arm == "softmax" ? -0.1 : 0.1;
    results.push_back(more);
  }
  EXPECT_EQ(cell(results, "softmax", "", "lr"), "0.01");
  EXPECT_EQ(cell(results, "diff_v2", "", "lr"), "0.001");
  EXPECT_EQ(cell(results, "diff_v2", "", "chosen from"), "2");
  EXPECT_EQ(cell(results, "diff_v2", "final loss vs softmax", "difference"), "+0.0525");
}

TEST(ArmTable, shows_no_difference_to_runs_of_other_seeds) {
  std::vector<Result> results;
  for (const char* arm : {"softmax", "diff_v2"})
    for (const double lr : {1e-3, 2e-3, 4e-3})
      for (const int seed : {1, 2, 3})
        results.push_back({.arm = arm, .lr = lr, .seed = seed, .loss = lr == 2e-3 ? 2.2 : 2.3});
  const std::string against = "final loss vs softmax";
  EXPECT_EQ(cell(results, "diff_v2", against, "difference"), "+0.0000");
  for (const int seed : {11, 12})
    results.push_back({.arm = "diff_v2", .lr = 2e-3, .seed = seed, .loss = 2.1});
  EXPECT_EQ(cell(results, "diff_v2", "final loss", "mean"), "2.1000") << "of the new seeds";
  EXPECT_EQ(cell(results, "diff_v2", against, "difference"), "no such cell");
  for (const int seed : {1, 2, 3})
    results.push_back({.arm = "diff_v1", .lr = 2e-3, .seed = seed, .loss = 2.25});
  EXPECT_EQ(cell(results, "diff_v1", against, "difference"), "+0.0500");
  EXPECT_EQ(cell(results, "diff_v2", against, "difference"), "-");
  EXPECT_EQ(cell(results, "diff_v2", against, "pairs"), "-");
}

TEST(ArmTable, compares_each_size_with_its_own_baseline) {
  std::vector<Result> results;
  for (const bool wide : {false, true}) {
    for (const int seed : {1, 2}) {
      const std::map<std::string, std::string> size{{"model.d_ff", wide ? "48" : "24"}};
      results.push_back({.seed = seed, .loss = wide ? 2.1 : 2.3, .config = size});
      results.push_back(
          {.arm = "diff_v2", .seed = seed, .loss = wide ? 2.05 : 2.2, .config = size});
    }
  }
  const std::vector<Row> runs = records(results);
  const std::vector<Study> studies = make_studies(runs);
  std::vector<double> differences;
  for (const LrCurve& curve : lr_curves(studies))
    if (curve.arm == "diff_v2") differences.push_back(curve.gap.difference.difference.mean);
  EXPECT_THAT(differences, testing::ElementsAre(testing::DoubleNear(-0.1, 1e-12),
                                                testing::DoubleNear(-0.05, 1e-12)));
}

TEST(ArmTable, counts_a_diverged_run_with_the_loss_of_a_uniform_guess) {
  std::vector<Result> results = four_seeds();
  results[1].state = run::RunState::diverged;  // diff_v2, seed 1
  // Mean of ln(256) = 5.54518 and 2.272, 2.283, 2.294.
  EXPECT_EQ(cell(results, "diff_v2", "final loss", "mean"), "3.0985");
  EXPECT_EQ(cell(results, "diff_v2", "final loss vs softmax", "pairs"), "4");
  EXPECT_EQ(cell(results, "diff_v2", "", "state"), "3 finished, 1 diverged at 12");
}

TEST(ArmTable, compares_arms_of_other_sizes_if_each_has_one) {
  std::vector<Result> results = four_seeds();
  for (Result& each : results)
    if (each.arm == "diff_v2") each.config["model.d_model"] = "32";
  EXPECT_EQ(cell(results, "diff_v2", "final loss vs softmax", "difference"), "-0.0475");
}

TEST(ArmTable, is_followed_by_notes_on_the_columns_that_it_shows) {
  const std::vector<Row> runs = records(four_seeds());
  EXPECT_THAT(tables_text(make_studies(runs), 2000),
              AllOf(HasSubstr("numbers are means over its complete runs"),
                    HasSubstr("nats per byte"), HasSubstr("+- is half of a 95 % t-interval"),
                    HasSubstr("each at its own rate, paired by seed"),
                    Not(HasSubstr("chosen from")), Not(HasSubstr("train is"))));
}

TEST(LrTable, has_only_arms_with_several_learning_rates) {
  std::vector<Result> results = four_seeds();
  std::vector<Row> runs = records(results);
  EXPECT_TRUE(lr_table(lr_curves(make_study(runs))).rows.empty());
  EXPECT_THAT(tables_text(make_studies(runs), 100), Not(HasSubstr("lr sensitivity")));
  results.push_back({.arm = "diff_v2", .lr = 1e-2, .loss = 2.4});
  runs = records(results);
  const system::Table table = lr_table(lr_curves(make_study(runs)));
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.rows[0][0], "diff_v2");
  EXPECT_EQ(table.rows[0][3], "1") << "the seed that ran at both";
  EXPECT_THAT(tables_text(make_studies(runs), 100), HasSubstr("lr sensitivity"));
  EXPECT_THAT(tables_text(make_studies(runs), 100), HasSubstr("diff_v2 has no lr*"));
}

TEST(Quantities, are_formatted_as_specified) {
  EXPECT_EQ(written(2.33114, Format::loss), "2.3311");
  EXPECT_EQ(written(6.5, Format::count), "6.5");
  EXPECT_EQ(written(0.4241, Format::norm), "0.424");
  EXPECT_EQ(written(321000, Format::norm), "3.21e+05");
  EXPECT_EQ(written(41018.4, Format::whole), "41,018");
  for (const Format format : {Format::loss, Format::norm, Format::whole}) {
    EXPECT_EQ(written(kNaN, format), "-");
  }
}

TEST(DescribeState, shows_the_progress_of_a_run) {
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

TEST(LossUnit, is_a_byte_if_all_runs_read_text) {
  std::vector<Row> runs = records({{}, {.seed = 2}});
  const std::string axis = "gap, nats per token; nats per token";
  EXPECT_EQ(with_loss_unit(make_study(runs), axis), "gap, nats per byte; nats per byte");
  runs[1].config["data.type"] = "tokens";
  EXPECT_EQ(with_loss_unit(make_study(runs), axis), axis);
}

}  // namespace
}  // namespace difftape::study
