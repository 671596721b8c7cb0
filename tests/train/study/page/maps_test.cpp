// Heat maps of layers and of accuracies, as the script of the page reads them.
#include "tests/train/study/compare/synthetic_study.h"
#include "train/study/page/sections.h"

namespace difftape::study::page {
namespace {

/// Returns the section that `make` makes of these runs.
template <class F>
Section section_of(const std::vector<Row>& runs, F&& make) {
  const Study study = make_study(runs);
  const std::vector<LrCurve> curves = lr_curves(study);
  return make(Input{study, curves, 1e-3, select_charts(study)});
}

TEST(AccuracySection, is_the_mean_over_complete_runs) {
  const auto accuracy = [](int seed, run::RunState state, double value) {
    LoadedRun run = loaded_run({.seed = seed, .state = state});
    run.metrics.columns["task/accuracy/1/2"] = std::vector(run.metrics.step.size(), value);
    return row_of(run);
  };
  const std::vector<Row> runs = {accuracy(1, run::RunState::running, 0),
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
  LoadedRun open = loaded_run({.state = run::RunState::stopped}), run = loaded_run({.seed = 2});
  open.metrics.columns["act/kurtosis/0"] = std::vector(open.metrics.step.size(), 4321.5);
  run::Column &first = run.metrics.columns["act/kurtosis/0"],
              &second = run.metrics.columns["act/kurtosis/1"];
  for (const std::size_t row : {0u, 9u, 19u}) second.set(row, 10.0 + static_cast<double>(row));
  first.set(18, kNaN);
  first.set(19, 5);
  const auto data = section_of({row_of(open), row_of(run)}, layers_section).data;
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
  std::vector<Row> runs;
  for (const char* arm : {"a", "b", "c"}) {
    LoadedRun run = loaded_run({.arm = arm});
    for (int layer = 0; layer < 900; ++layer) {
      run.metrics.columns[fmt::format("act/kurtosis/{}", layer)] =
          std::vector(run.metrics.step.size(), 1e301);
    }
    runs.push_back(row_of(run));
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

}  // namespace
}  // namespace difftape::study::page
