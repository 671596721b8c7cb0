#include "train/study/compare/listing.h"

#include <gmock/gmock.h>

#include "tests/support/scratch.h"
#include "tests/train/study/compare/synthetic_run.h"

namespace difftape::study {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(RunList, reads_a_run_again_only_when_its_files_have_changed) {
  const test::ScratchDir dir;
  const fs::path run = test::write_run(dir / "run", {.floor = 2, .steps = 100});
  const fs::path metrics = run / "metrics.jsonl";
  RunList list;
  list.read(std::vector{dir.path()});
  const auto before = list.runs().at(0).cells;
  const auto time = fs::last_write_time(metrics);
  test::put(metrics, std::string(fs::file_size(metrics) - 1, '?') + "\n");
  fs::last_write_time(metrics, time);
  list.read(std::vector{dir.path()});
  ASSERT_EQ(list.runs().size(), 1u) << "nothing says that it was written";
  EXPECT_EQ(list.runs()[0].cells, before);
  fs::last_write_time(metrics, time + std::chrono::seconds(1));
  list.read(std::vector{dir.path()});
  EXPECT_TRUE(list.runs().empty());
  EXPECT_THAT(list.left_out(), ElementsAre(HasSubstr("metrics.jsonl:1: not a line of metrics")));
}

TEST(RunList, counts_states) {
  const test::ScratchDir dir;
  test::write_run(dir / "a", {.steps = 100});
  test::write_run(dir / "b", {.steps = 100});
  const fs::path c = test::write_run(dir / "c", {.steps = 100, .state = run::RunState::running});
  RunList list;
  EXPECT_EQ(list.states(), "no run");
  list.read(std::vector{dir.path()});
  EXPECT_EQ(list.states(), "2 finished, 1 killed");
  EXPECT_FALSE(list.any_running());
  const system::DirectoryLock training(c);
  list.read(std::vector{dir.path()});
  EXPECT_EQ(list.states(), "1 running, 2 finished");
  EXPECT_TRUE(list.any_running());
}

}  // namespace
}  // namespace difftape::study
