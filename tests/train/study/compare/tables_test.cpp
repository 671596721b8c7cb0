#include "train/study/compare/tables.h"

#include "tests/train/study/compare/synthetic_study.h"
#include "train/study/compare/claims/output.h"
#include "train/study/compare/quantities.h"

namespace difftape::study {
namespace {

RunRecord run_of(const std::string& name, const std::map<std::string, double>& numbers) {
  RunRecord run;
  run.name = run.arm = name;
  run.status = {.state = run::RunState::finished, .step = 500, .steps = 500, .parameters = 820224};
  run.metrics.step = {1};
  run.metrics.columns["train/loss"] = {5.5};
  run.first_loss = 5.5;
  for (const Quantity& each : quantities()) {
    const auto found = numbers.find(each.name);
    run.numbers.push_back(found == numbers.end() ? kNaN : found->second);
  }
  return run;
}

void set(RunRecord& run, const char* name, double value) {
  run.numbers[static_cast<std::size_t>(&quantity(name) - quantities().data())] = value;
}

std::vector<RunRecord> three_runs() {
  const RunRecord softmax = run_of("softmax", {{"train_loss", 2.29153},
                                               {"val_loss", 2.33114},
                                               {"loss_spikes", 0},
                                               {"grad_spikes", 2},
                                               {"grad_norm_median", 0.4241},
                                               {"grad_norm_p99", 2.408},
                                               {"grad_norm_max", 15718},
                                               {"grad_norm_sd_over_median", 0.328},
                                               {"tokens_per_sec", 41018}});
  RunRecord v1 = softmax, v2 = softmax;
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
Study study_of(const std::vector<RunRecord>& runs) {
  Study study;
  for (const RunRecord& run : runs) study.arms.push_back({run.arm, {{run.lr, {&run}}}});
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
  const std::vector<RunRecord> runs = three_runs();
  EXPECT_EQ("\n" + tables_text(study_of(runs), 80), R"(
lowest validation loss: diff_v2 2.3100, 0.0211 below softmax; one seed, so no
evidence; left out: diff_v1 (1 of 1 runs diverged)

                     ------------ loss ------------  - spikes -  ----------- grad_norm ------------
run      parameters   train     val  val vs softmax  loss  grad  median    p99       max  sd/median  tokens/s  state
softmax     820,224  2.2915  2.3311               -   0.0   2.0   0.424  2.408  1.57e+04      0.328    41,018  finished
diff_v1     820,224       -       -               -   0.0   2.0   0.424  2.408  1.57e+04      0.328    41,018  diverged at step 400 (train/loss)
diff_v2   1,853,504  2.2915  2.3100         -0.0211   0.0   2.0   0.424  2.408  1.57e+04      0.328    41,018  finished
Losses are in nats per byte; val is the loss of the last validation. train is
the mean over the last 5 % of the steps. "vs" is the difference from the
baseline, paired by seed. Spikes are steps far outside the range of the steps
before them, counted after the first 10 % of a run. sd/median is the standard
deviation of grad_norm divided by its median in the second half of a run, up to
where the learning rate falls.
Each row is one run. One seed has no interval and decides nothing, however large
the difference.
)");
}

TEST(RunTable, explains_that_single_runs_decide_nothing) {
  std::vector<RunRecord> runs = three_runs();
  EXPECT_THAT(tables_text(study_of(runs), 80), HasSubstr("decides nothing"));
  runs.resize(1);
  EXPECT_THAT(tables_text(study_of(runs), 80), Not(HasSubstr("decides nothing")));
  EXPECT_THAT(tables_text(study_of(runs), 80), Not(HasSubstr("vs"))) << "it has no baseline";
}

TEST(RunTable, compares_runs_with_the_same_seed) {
  std::vector<RunRecord> runs = three_runs();
  runs[2].seed = runs[0].seed + 1;
  const system::Table table = run_table(study_of(runs));
  for (const system::Column& each : table.columns) EXPECT_NE(each.name, "val vs softmax");
}

TEST(RunTable, compares_with_the_named_baseline) {
  const std::vector<RunRecord> runs = three_runs();
  Study study = study_of(runs);
  study.baseline = 2;
  const system::Table table = run_table(study);
  EXPECT_EQ(table.rows[0][column(table, "val vs diff_v2")], "+0.0211");
  EXPECT_EQ(table.rows[2][column(table, "val vs diff_v2")], "-");
}

TEST(RunTable, has_a_column_per_selected_quantity_and_a_dash_without_a_number) {
  std::vector<RunRecord> runs = three_runs();
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

TEST(StudyTable, writes_a_p_that_rounds_to_zero_as_a_bound) {
  const std::vector<RunRecord> runs = records(four_seeds());
  const system::Table table = study_table(make_study(runs));
  EXPECT_EQ(table.rows[1][column(table, "p (Holm)")], "<0.001");
}

TEST(StudyTable, is_followed_by_notes_on_the_columns_that_it_shows) {
  std::vector<Result> results = four_seeds();
  std::vector<RunRecord> runs = records(results);
  EXPECT_THAT(tables_text(make_study(runs), 2000),
              AllOf(HasSubstr("\nRows are means over complete runs"), HasSubstr("nats per byte"),
                    HasSubstr("+- is half of a 95 % t-interval over seeds only; the intervals of "
                              "the headline and of claims about losses also cover the sampling "
                              "error of the held-out text."),
                    HasSubstr("\"vs\" is the difference"), HasSubstr("p (Holm) is"),
                    Not(HasSubstr("train is")), Not(HasSubstr("sd/median"))));
  for (Result& each : results) each.lr = each.arm == "diff_v2" ? 2e-3 : 1e-3;
  runs = records(results);
  EXPECT_THAT(tables_text(make_study(runs), 2000),
              AllOf(HasSubstr("+- is half"), Not(HasSubstr("vs")), Not(HasSubstr("Holm"))));
}

TEST(StudyTable, states_how_many_pairs_its_differences_exclude) {
  std::vector<Result> results = four_seeds();
  std::vector<RunRecord> runs = records(results);
  EXPECT_EQ(dropped_note(make_study(runs)), "");
  results[4].state = run::RunState::diverged;  // softmax, seed 3
  results[7].state = run::RunState::diverged;  // diff_v2, seed 4
  results[1].state = run::RunState::running;   // diff_v2, seed 1: no pair yet
  runs = records(results);
  const std::string note = dropped_note(make_study(runs));
  EXPECT_EQ(note,
            "Differences and their p values exclude pairs in which a run diverged: 2 of 3 pairs of "
            "diff_v2 at lr 0.001.");
  EXPECT_THAT(tables_text(make_study(runs), 200), HasSubstr('\n' + note + '\n'));
}

TEST(LrTable, has_only_arms_with_several_learning_rates_or_a_gap_beside_them) {
  std::vector<Result> results = four_seeds();
  std::vector<RunRecord> runs = records(results);
  EXPECT_TRUE(lr_table(lr_curves(make_study(runs))).rows.empty());
  EXPECT_THAT(tables_text(make_study(runs), 100), Not(HasSubstr("lr sensitivity")));
  results.push_back({.arm = "diff_v2", .lr = 1e-2, .loss = 2.4});
  runs = records(results);
  const system::Table table = lr_table(lr_curves(make_study(runs)));
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.rows[0][0], "diff_v2");
  EXPECT_EQ(table.rows[0][3], "1") << "the seed that ran at both";
  EXPECT_THAT(tables_text(make_study(runs), 100), HasSubstr("lr sensitivity"));
  EXPECT_THAT(tables_text(make_study(runs), 100), HasSubstr("diff_v2 has no lr*"));
  results = {{.arm = "softmax", .loss = 2.3, .config = {{"model.d_model", "32"}}},
             {.arm = "diff_v2", .lr = 2e-3, .loss = 2.2, .config = {{"model.d_model", "32"}}}};
  runs = records(results);
  EXPECT_TRUE(lr_table(lr_curves(make_study(runs))).rows.empty()) << "no arm has several rates";
  for (const Result& each : four_seeds()) results.push_back(each);
  results.push_back({.arm = "diff_v2", .lr = 1e-2, .loss = 2.4});
  runs = records(results);
  const auto rows = lr_table(lr_curves(make_study(runs))).rows;
  ASSERT_EQ(rows.size(), 2u);
  const auto given = std::ranges::find(rows, "1", [](const auto& row) { return row[2]; });
  ASSERT_NE(given, rows.end());
  EXPECT_EQ((*given)[5], "-") << "no lr*";
  EXPECT_EQ((*given)[9], "-0.1000");
  EXPECT_EQ((*given)[11], "1 at given rates");
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

std::string headline_of(const std::vector<Result>& results, const std::string& baseline = "") {
  const std::vector<RunRecord> runs = records(results);
  return headline(make_study(runs, baseline));
}

TEST(Headline, of_one_seed_is_no_evidence) {
  EXPECT_EQ(
      headline_of({{.loss = 1.7948}, {.arm = "diff_v2", .loss = 1.7388}}),
      "lowest validation loss: diff_v2 1.7388, 0.0560 below softmax; one seed, so no evidence");
}

TEST(Headline, of_a_baseline_that_is_lowest_names_the_next_arm) {
  EXPECT_EQ(
      headline_of({{.loss = 1.7}, {.arm = "diff_v1", .loss = 1.9}, {.arm = "b", .loss = 1.8}}),
      "lowest validation loss: softmax 1.7000, 0.1000 below b; one seed, so no evidence");
}

TEST(Headline, of_several_seeds_is_the_paired_difference_with_its_interval) {
  std::vector<Result> results;
  for (const int seed : {1, 2, 3}) {
    results.push_back({.seed = seed, .loss = 2 + 0.1 * seed});
    results.push_back({.arm = "diff_v2", .seed = seed, .loss = 1.95 + 0.1 * seed - 0.001 * seed});
  }
  // Differences 0.051, 0.052, 0.053: 0.052 +- 4.3027 * 0.001 / sqrt(3).
  EXPECT_EQ(headline_of(results),
            "lowest validation loss: diff_v2 2.1480, 0.0520 below softmax; "
            "95 % interval 0.0495 to 0.0545, n 3");
  for (Result& result : results) {
    if (result.arm == "diff_v2" && result.seed == 1) result.loss += 0.1;
  }
  EXPECT_THAT(headline_of(results), HasSubstr(", n 3, so no difference is shown"));
}

TEST(Headline, pairs_the_seeds_that_both_arms_have) {
  const std::vector<Result> apart = {{.seed = 1, .loss = 2}, {.arm = "b", .seed = 2, .loss = 1.5}};
  EXPECT_EQ(headline_of(apart),
            "lowest validation loss: b 1.5000, 0.5000 below softmax; no seed in common, so no "
            "evidence");
  const std::vector<Result> one = {
      {.seed = 1, .loss = 2}, {.seed = 2, .loss = 3}, {.arm = "b", .seed = 2, .loss = 1.5}};
  EXPECT_THAT(headline_of(one), HasSubstr(", 1.5000 below softmax; one seed, so no evidence"));
}

TEST(Headline, of_a_sweep_names_the_rates_and_their_choice) {
  std::vector<Result> results;
  for (const int seed : {1, 2}) {
    for (const double lr : {1e-3, 1e-2}) {
      results.push_back({.lr = lr, .seed = seed, .loss = lr == 1e-3 ? 2.0 : 2.2});
      results.push_back(
          {.arm = "b", .lr = lr, .seed = seed, .loss = (lr == 1e-3 ? 2.1 : 1.9) + 0.01 * seed});
    }
  }
  EXPECT_THAT(headline_of(results),
              HasSubstr("lowest validation loss: b 1.9150 at learning rate 0.01, 0.0850 below "
                        "softmax at learning rate 0.001; 95 % interval "));
  EXPECT_THAT(headline_of(results), HasSubstr(", uncorrected for the choice, n 2"));
}

TEST(Headline, reports_failed_runs) {
  using enum run::RunState;
  EXPECT_EQ(headline_of({{.state = diverged}, {.arm = "b", .state = diverged}}),
            "no run finished: 2 diverged at 12, 12");
  EXPECT_EQ(headline_of({{.loss = 2}, {.arm = "b", .state = diverged}}),
            "lowest validation loss: softmax 2.0000; left out: b (1 of 1 runs diverged)");
  EXPECT_EQ(headline_of({{.state = running}}), "no run finished: 1 running");
  EXPECT_EQ(headline_of({{.loss = 2}, {.arm = "b", .loss = 1, .state = running}}),
            "so far, lowest validation loss: softmax 2.0000");
}

TEST(Headline, skips_learning_rates_at_which_a_run_diverged) {
  using enum run::RunState;
  const std::vector<Result> softmax = {{.loss = 2}, {.seed = 2, .loss = 2}};
  std::vector<Result> with_v1 = softmax;
  with_v1.push_back({.arm = "v1", .loss = 1.5});
  with_v1.push_back({.arm = "v1", .seed = 2, .loss = 1.5, .state = diverged});
  EXPECT_EQ(headline_of(with_v1),
            "lowest validation loss: softmax 2.0000; left out: v1 (1 of 2 runs diverged)");
  std::vector<Result> twice = with_v1;
  twice.push_back({.arm = "v1", .lr = 1e-2, .loss = 1.4, .state = diverged});
  twice.push_back({.arm = "v1", .lr = 1e-2, .seed = 2, .loss = 1.4});
  EXPECT_EQ(headline_of(twice),
            "lowest validation loss: softmax 2.0000 at learning rate 0.001; left out: v1 (2 of 4 "
            "runs diverged, some at every learning rate)");
  std::vector<Result> once = with_v1;
  once.push_back({.arm = "v1", .lr = 1e-2, .loss = 1.9});
  once.push_back({.arm = "v1", .lr = 1e-2, .seed = 2, .loss = 1.9});
  EXPECT_THAT(headline_of(once),
              StartsWith("lowest validation loss: v1 1.9000 at learning rate 0.01, 0.1000 "
                         "below softmax at learning rate 0.001; 95 % interval "))
      << "not the 1.5 of the seed that is left at 0.001";
  EXPECT_THAT(headline_of(once), Not(HasSubstr("left out")));
}

TEST(Headline, ranks_no_arm_whose_only_learning_rate_has_a_diverged_run) {
  EXPECT_EQ(headline_of({{.loss = 2}, {.seed = 2, .state = run::RunState::diverged}}),
            "no arm is ranked, since runs of each diverged: softmax (1 of 2 runs diverged)");
}

TEST(Headline, has_one_line_per_task) {
  EXPECT_EQ(
      headline_of(
          {{.loss = 2},
           {.arm = "b", .loss = 1.5},
           {.loss = 1, .config = {{"train.steps", "40"}}},
           {.arm = "b", .state = run::RunState::diverged, .config = {{"train.steps", "80"}}}}),
      "20 steps: lowest validation loss b 1.5000, 0.5000 below softmax (one seed, so no evidence)\n"
      "40 steps: validation loss softmax 1.0000\n"
      "80 steps: no run finished: 1 diverged at 12");
}

TEST(Headline, of_a_task_among_others_is_short_and_explained_below_the_tables) {
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
  EXPECT_THAT(headline_of(results), StartsWith(line));
  EXPECT_LE(line.size(), 100u);
  const std::vector<RunRecord> runs = records(results);
  const std::string text = study_text(make_study(runs), 400);
  EXPECT_THAT(text, StartsWith(line + "1600 steps: lowest validation loss "));
  EXPECT_THAT(text, HasSubstr("brackets contain the 95 %"));
}

TEST(Headline, of_a_single_run_compares_nothing) {
  const std::vector<RunRecord> runs = records({{.loss = 1.7388}});
  EXPECT_EQ(headline(make_study(runs)), "validation loss: softmax 1.7388");
  const std::string text = study_text(make_study(runs), 100);
  EXPECT_THAT(text, StartsWith("validation loss: softmax 1.7388\n\n"));
  EXPECT_THAT(text, Not(HasSubstr("not tested")));
}

TEST(LossUnit, is_a_byte_if_all_runs_read_text) {
  std::vector<RunRecord> runs = records({{}, {.seed = 2}});
  const std::string axis = "gap, nats per token; nats per token";
  EXPECT_EQ(with_loss_unit(make_study(runs), axis), "gap, nats per byte; nats per byte");
  runs[1].config.data.type = run::DataKind::tokens;
  EXPECT_EQ(with_loss_unit(make_study(runs), axis), axis);
}

}  // namespace
}  // namespace difftape::study
