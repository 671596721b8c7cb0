#include "train/study/page/sections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/scratch.h"
#include "tests/train/study/compare/synthetic_run.h"

namespace difftape::study::page {
namespace {

using test::ScratchDir;
using test::SyntheticRun;
using testing::HasSubstr;
using testing::Not;

/// Runs of the given kind in a study.
struct Runs {
  explicit Runs(const std::vector<SyntheticRun>& all) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      records.push_back(load_run(write_run(dir / std::to_string(i), all[i])));
    }
    study = make_study(records);
  }
  ScratchDir dir;
  std::vector<RunRecord> records;
  Study study;
};

TEST(Settings, shows_what_differs_and_folds_the_rest_away) {
  const std::vector<std::string> runs = {"one", "<two>"};
  const std::string html =
      differences({{"optim.lr", {"1e-3", "1e-2"}}, {"run.seed", {"1", "1"}}}, runs);
  EXPECT_THAT(html, HasSubstr("&lt;two&gt;"));
  EXPECT_THAT(html,
              HasSubstr("<tr><th scope=\"row\">optim.lr</th><td>1e-3</td><td>1e-2</td></tr>"));
  EXPECT_THAT(html, HasSubstr("1 the same in every arm"));
  EXPECT_LT(html.find("optim.lr"), html.find("<details>"));
  EXPECT_GT(html.find("run.seed"), html.find("<details>"));
}

TEST(Settings, of_equal_runs_are_none) {
  const std::vector<std::string> two = {"a", "b"}, one = {"a"};
  EXPECT_THAT(differences({{"run.seed", {"1", "1"}}}, two), HasSubstr("No differences."));
  EXPECT_THAT(differences({{"run.seed", {"1"}}}, one), Not(HasSubstr("No differences.")));
}

TEST(Settings, of_an_arm_are_listed_where_its_runs_differ) {
  std::vector<SyntheticRun> all;
  for (int seed = 1; seed <= 10; ++seed) {
    all.push_back({.name = "a" + std::to_string(seed), .steps = 20, .seed = seed, .arm = "a"});
  }
  all.push_back({.name = "b1", .steps = 20, .seed = 1, .arm = "b", .lr = "0.01"});
  const Runs runs(all);
  for (const auto& [key, values] : configs(runs.study)) {
    EXPECT_NE(key, "run.name");
    if (key == "run.seed") {
      EXPECT_EQ(values, (std::vector<std::string>{"1, …, 10 (10 values)", "1"}));
    }
    if (key == "optim.lr") {
      EXPECT_EQ(values, (std::vector<std::string>{"0.001", "0.01"}));
    }
  }
}

TEST(Settings, show_each_command_once_and_fold_many_away) {
  std::vector<SyntheticRun> all;
  for (int i = 0; i < 6; ++i) {
    all.push_back(
        {.name = std::to_string(i), .steps = 20, .command = {"difftape", std::to_string(i / 2)}});
  }
  EXPECT_EQ(commands(Runs(all).study),
            "<pre>difftape 0</pre>\n<pre>difftape 1</pre>\n<pre>difftape 2</pre>\n");
  for (int i = 6; i < 14; ++i) {
    all.push_back(
        {.name = std::to_string(i), .steps = 20, .command = {"difftape", std::to_string(i)}});
  }
  EXPECT_THAT(commands(Runs(all).study), HasSubstr("<details><summary>7 more</summary>"));
}

TEST(Settings, notices_say_what_is_missing_and_nothing_else) {
  Runs runs({{.steps = 20}, {.name = "b", .steps = 20}});
  EXPECT_EQ(notices(runs.study, {}), "");
  runs.records[1].status.state = run::RunState::running;
  const std::vector<std::string> notes = {"left out: <c>"};
  EXPECT_EQ(notices(runs.study, notes),
            "<p class=\"notice\">left out: &lt;c&gt;</p>\n"
            "<p class=\"notice\">1 of 2 runs is not finished: drawn as far as logged, not in the "
            "statistics.</p>\n");
}

TEST(Settings, notices_do_not_take_one_file_at_two_paths_for_different_data) {
  Runs runs({{.steps = 20}, {.name = "b", .steps = 20}});
  runs.records[0].config.data.path = {"data/a.bin"};
  runs.records[1].config.data.path = {"/mnt/a.bin"};
  EXPECT_EQ(notices(make_study(runs.records), {}), "");
}

}  // namespace
}  // namespace difftape::study::page
