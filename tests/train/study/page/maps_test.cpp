// Heat maps of layers, of accuracies and of grids, as the script of the page reads them.
#include "tests/train/study/compare/synthetic_study.h"
#include "train/study/page/sections.h"

namespace difftape::study::page {
namespace {

/// Returns the section that `make` makes of these runs.
template <class F>
Section section_of(const std::vector<RunRecord>& runs, F&& make) {
  const Study study = make_study(runs);
  const std::vector<LrCurve> curves = lr_curves(study);
  return make(Input{study, curves, 1e-3, select_charts(study)});
}

TEST(AccuracySection, is_the_mean_over_complete_runs) {
  const auto accuracy = [](int seed, run::RunState state, double value) {
    RunRecord run = record({.seed = seed, .state = state});
    run.metrics.columns["task/accuracy/1/2"] = std::vector(run.metrics.step.size(), value);
    return run;
  };
  const std::vector<RunRecord> runs = {accuracy(1, run::RunState::running, 0),
                                       accuracy(2, run::RunState::finished, 0.5),
                                       accuracy(3, run::RunState::finished, 0.75)};
  const Section section = section_of(runs, accuracy_section);
  EXPECT_EQ(section.data[0]["panels"].dump(),
            R"([{"arm":"softmax","columns":["2"],"rows":["1"],"values":[0.625]}])");
  EXPECT_EQ(section.data[0]["range"].dump(), "[0,1]");
  EXPECT_EQ(section_of({runs[0]}, accuracy_section).html, "")
      << "nothing is known of a run in progress";
}

TEST(LayersSection, shows_the_first_complete_run_and_keeps_the_steps_of_each_layer) {
  RunRecord open = record({.state = run::RunState::stopped}), run = record({.seed = 2});
  open.metrics.columns["act/kurtosis/0"] = std::vector(open.metrics.step.size(), 4321.5);
  run::Column &first = run.metrics.columns["act/kurtosis/0"],
              &second = run.metrics.columns["act/kurtosis/1"];
  for (const std::size_t row : {0u, 9u, 19u}) second.set(row, 10.0 + static_cast<double>(row));
  first.set(18, kNaN);
  first.set(19, 5);
  const auto data = section_of({open, run}, layers_section).data;
  ASSERT_EQ(data.size(), 1u);
  EXPECT_EQ(data[0]["title"], "Kurtosis");
  EXPECT_EQ(data[0]["file"], "act_kurtosis.csv");
  EXPECT_EQ(data[0]["x"], "step");
  EXPECT_EQ(data[0]["y"], "layer");
  EXPECT_EQ(data[0]["panels"].dump(),
            R"([{"arm":"softmax","columns":["1","10","20"],"rows":["0","1"],)"
            R"("values":[null,null,5.0,10.0,19.0,29.0]}])");
}

TEST(LayersSection, omits_arms_if_there_are_too_many_rows) {
  std::vector<RunRecord> runs;
  for (const char* arm : {"a", "b", "c"}) {
    runs.push_back(record({.arm = arm}));
    for (int layer = 0; layer < 900; ++layer) {
      runs.back().metrics.columns[fmt::format("act/kurtosis/{}", layer)] =
          std::vector(runs.back().metrics.step.size(), 1e301);
    }
  }
  const Section section = section_of(runs, layers_section);
  EXPECT_THAT(section.html, HasSubstr("1 arms are omitted to keep this page small.</p>"));
  ASSERT_EQ(section.data[0]["panels"].size(), 2u);
  EXPECT_EQ(section.data[0]["panels"][1]["columns"].size(), 6u);
  EXPECT_TRUE(section.data[0]["panels"][1]["values"][0].is_null()) << "no axis can hold it";
}

TEST(SortNames, puts_numbers_by_value_before_other_names) {
  std::vector<std::string> names{"b", "10", "1a", "", "9", "0.5", "a", "nan"};
  sort_names(names);
  EXPECT_EQ(names, (std::vector<std::string>{"0.5", "9", "10", "", "1a", "a", "b", "nan"}));
}

/// Returns two kinds of attention at three learning rates and two clipping norms, with two seeds.
std::vector<Result> grid() {
  std::vector<Result> results;
  for (const char* kind : {"softmax", "diff_v2"}) {
    for (const double lr : {1e-2, 1e-3, 1e-4}) {
      for (const char* clip : {"1", "0.5"}) {
        for (const int seed : {1, 2}) {
          results.push_back({.arm = kind,
                             .attention = {{"kind", kind}},
                             .lr = lr,
                             .seed = seed,
                             .loss = 2 + lr + 0.1 * seed + (clip == std::string("1") ? 0 : 0.5),
                             .config = {{"optim.max_grad_norm", clip}, {"optim.min_lr", "7"}}});
        }
      }
    }
  }
  results.back().state = run::RunState::diverged;
  results[results.size() - 2].state = run::RunState::diverged;
  return results;
}

Section grid_of(const std::vector<Result>& results) {
  const std::vector<RunRecord> runs = records(results);
  return grid_section(make_study(runs));
}

TEST(Grid, is_a_map_of_the_mean_loss_over_two_keys_for_each_kind_of_attention) {
  const auto map = grid_of(grid()).data[0];
  EXPECT_EQ(map["x"], "lr");
  EXPECT_EQ(map["y"], "max_grad_norm");
  EXPECT_EQ(map["meaning"], "nats per byte");
  EXPECT_EQ(map["panels"].dump(),
            R"([{"arm":"softmax","columns":["0.0001","0.001","0.01"],"rows":["0.5","1"],)"
            R"("values":[2.6501,2.651,2.66,2.1501,2.151,2.16]},)"
            R"({"arm":"diff_v2","columns":["0.0001","0.001","0.01"],"rows":["0.5","1"],)"
            R"("values":[null,2.651,2.66,2.1501,2.151,2.16]}])")
      << "names by size; of the cell without a number both runs diverged";
}

TEST(Grid, of_three_keys_shows_the_lowest_over_the_third) {
  std::vector<Result> results;
  for (const char* weight : {"0", "0.1"}) {
    for (const char* clip : {"1", "0.5"}) {
      for (const char* decay : {"0", "0.1"}) {
        results.push_back({.loss = decay == std::string("0") ? 2.0 : 3.0,
                           .config = {{"model.z_loss_weight", weight},
                                      {"optim.max_grad_norm", clip},
                                      {"optim.weight_decay", decay}}});
      }
    }
  }
  const auto map = grid_of(results).data[0];
  EXPECT_THAT(map["meaning"].get<std::string>(), HasSubstr("the lowest over all other keys"));
  EXPECT_EQ(map["panels"][0]["values"].dump(), "[2.0,2.0,2.0,2.0]");
}

TEST(Grid, stays_within_the_task_of_the_baseline) {
  std::vector<Result> results = grid();
  for (Result result : grid()) {
    result.loss = 0.5;
    result.config["train.steps"] = "40";
    results.push_back(result);
  }
  const auto map = grid_of(results).data[0];
  EXPECT_EQ(map["panels"], grid_of(grid()).data[0]["panels"]);
  EXPECT_EQ(map["meaning"], "nats per byte; 20 steps");
}

TEST(Grid, is_empty_for_learning_rates_or_kinds_alone) {
  std::vector<Result> lrs, kinds;
  for (const double lr : {1e-4, 1e-3, 1e-2, 1e-1}) {
    for (const char* kind : {"softmax", "diff_v2"}) {
      // A size that follows from the kind is not a key of its own.
      lrs.push_back({.arm = kind,
                     .attention = {{"kind", kind}},
                     .lr = lr,
                     .config = {{"model.d_ff", kind == std::string("softmax") ? "344" : "340"}}});
    }
  }
  EXPECT_EQ(grid_of(lrs).html, "");
  EXPECT_EQ(grid_of({{}}).html, "");
}

}  // namespace
}  // namespace difftape::study::page
