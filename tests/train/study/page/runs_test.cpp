#include <gmock/gmock.h>

#include "tests/support/scratch.h"
#include "tests/train/study/compare/synthetic_run.h"
#include "tests/train/study/compare/synthetic_study.h"
#include "train/study/page/sections.h"

namespace difftape::study::page {
namespace {

using test::ScratchDir;
using test::write_run;
using testing::HasSubstr;

TEST(RunsSection, links_the_files_that_each_run_has) {
  const ScratchDir dir;
  const auto run = write_run(dir / "runs/a b#1", {.steps = 50});
  test::put(run / "stdout.log", "step 1\n");
  const std::vector<RunRecord> runs{load_run(run)};
  EXPECT_THAT(runs_section(make_study(runs), dir / "pages"),
              HasSubstr("<td class=\"left files\"><a href=\"../runs/a%20b%231/metrics.jsonl\">"
                        "metrics</a><a href=\"../runs/a%20b%231/stdout.log\">log</a></td></tr>"))
      << "there is no config.yaml";
}

TEST(RunsSection, says_below_the_table_which_pairs_are_in_no_difference) {
  std::vector<test::Result> results;
  for (const char* arm : {"softmax", "<v1>"}) {
    for (const int seed : {1, 2, 3}) results.push_back({.arm = arm, .seed = seed});
  }
  std::vector<RunRecord> runs = test::records(results);
  EXPECT_THAT(runs_section(make_study(runs), ""), testing::Not(HasSubstr("leave out")));
  results.back().state = run::RunState::diverged;
  runs = test::records(results);
  EXPECT_THAT(runs_section(make_study(runs), ""),
              HasSubstr("<p class=\"muted note\">Differences and their p leave out pairs in which "
                        "a run diverged: 1 of 3 pairs of &lt;v1&gt; at lr 0.001.</p>"));
}

}  // namespace
}  // namespace difftape::study::page
