#include <gmock/gmock.h>

#include "tests/support/scratch.h"
#include "tests/train/study/compare/synthetic_run.h"
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

}  // namespace
}  // namespace difftape::study::page
