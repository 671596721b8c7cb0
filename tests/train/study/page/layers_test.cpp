#include "train/study/page/sections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/real.h"
#include "tests/train/study/compare/synthetic_study.h"

namespace difftape::study::page {
namespace {

using test::record;
using testing::HasSubstr;
using testing::Not;

/// The figures of `make` over these runs.
template <class F>
std::string figures(const std::vector<RunRecord>& runs, F&& make) {
  const Study study = make_study(runs);
  const std::vector<LrCurve> curves = lr_curves(study);
  return make(Input{study, curves, 1e-3, select_charts(study)});
}

TEST(AccuracyFigure, is_the_mean_over_complete_runs) {
  const auto accuracy = [](int seed, run::RunState state, double value) {
    RunRecord run = record({.seed = seed, .state = state});
    run.metrics.columns["task/accuracy/1/2"] = std::vector(run.metrics.step.size(), value);
    return run;
  };
  const std::vector<RunRecord> runs = {accuracy(1, run::RunState::running, 0),
                                       accuracy(2, run::RunState::finished, 0.5),
                                       accuracy(3, run::RunState::finished, 0.75)};
  EXPECT_THAT(figures(runs, accuracy_figure), HasSubstr("softmax,1,2,0.625%0A"));
  EXPECT_EQ(figures({runs[0]}, accuracy_figure), "") << "nothing is known of a run in progress";
}

TEST(LayerFigures, are_of_the_first_complete_run_and_keep_the_steps_of_each_layer) {
  RunRecord open = record({.state = run::RunState::stopped}), run = record({.seed = 2});
  open.metrics.columns["act/kurtosis/0"] = std::vector(open.metrics.step.size(), 4321.5);
  run::Column<double>&first = run.metrics.columns["act/kurtosis/0"],
  &second = run.metrics.columns["act/kurtosis/1"];
  for (const std::size_t row : {0u, 9u, 19u}) second.set(row, 10.0 + static_cast<double>(row));
  first.set(18, kNaN);
  first.set(19, 5);
  const std::string html = figures({open, run}, layer_figures);
  EXPECT_THAT(html, HasSubstr("arm,layer,step,value%0Asoftmax,0,20,5%0A"
                              "softmax,1,1,10%0Asoftmax,1,10,19%0Asoftmax,1,20,29%0A"));
  EXPECT_THAT(html, Not(HasSubstr("4321")));
}

TEST(LayerFigures, of_one_number_are_a_line_and_no_field) {
  std::vector<RunRecord> runs{record({}), record({.arm = "b"}), record({.arm = "c"})};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::vector<double> values(runs[i].metrics.step.size(), 0.0);
    if (i == 2) values.back() = 0.25;
    runs[i].metrics.columns["attn/sink_rate/0"] = values;
  }
  const std::string some = figures(runs, layer_figures);
  EXPECT_THAT(some, HasSubstr("<p class=\"constant\">0 everywhere: softmax, b</p>"));
  EXPECT_THAT(some, HasSubstr("<p class=\"arm\">c</p><svg"));
  EXPECT_THAT(some, Not(HasSubstr("<p class=\"arm\">softmax")));
  EXPECT_THAT(some, HasSubstr("softmax,0,1,0%0A")) << "the CSV has all";
  runs.pop_back();
  EXPECT_THAT(figures(runs, layer_figures), Not(HasSubstr("<svg")));
}

TEST(SortNames, puts_numbers_by_size_before_other_names) {
  std::vector<std::string> names{"b", "10", "1a", "", "9", "0.5", "a", "nan"};
  sort_names(names);
  EXPECT_EQ(names, (std::vector<std::string>{"0.5", "9", "10", "", "1a", "a", "b", "nan"}));
}

}  // namespace
}  // namespace difftape::study::page
