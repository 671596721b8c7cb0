// `difftape report --watch` beside runs that are still trained.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <csignal>

#include "tests/support/scratch.h"
#include "tests/train/app/program.h"
#include "tests/train/study/compare/synthetic_run.h"
#include "train/system/files.h"

namespace difftape::app {
namespace {

namespace fs = std::filesystem;
using test::contents;
using test::Outcome;
using test::put;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kRefresh = "\"refresh\":5";

class ReportWatch : public testing::Test {
 protected:
  void SetUp() override { fs::create_directory(dir / "sweep"); }

  fs::path write(const std::string& name, double floor, run::RunState state) {
    return test::write_run(dir / "sweep" / name,
                           {.name = name, .floor = floor, .steps = 100, .state = state});
  }
  /// A run that somebody trains from the moment that it is there.
  system::DirectoryLock write_running(const std::string& name, double floor) {
    test::write_run(dir / name,
                    {.name = name, .floor = floor, .steps = 100, .state = run::RunState::running});
    system::DirectoryLock lock(dir / name);
    fs::rename(dir / name, dir / "sweep" / name);
    return lock;
  }
  std::unique_ptr<test::Process> watch() {
    return std::make_unique<test::Process>(
        std::vector<std::string>{"report", "sweep", "--watch", "--out", "live.html"},
        test::Conditions{.directory = dir.path()});
  }
  std::string page() { return contents(dir / "live.html"); }

  test::ScratchDir dir;
};

TEST_F(ReportWatch, rewrites_the_page_until_the_last_run_has_ended) {
  write("a", 2.3, run::RunState::finished);
  const system::DirectoryLock training = write_running("b", 2.2);
  const fs::path open = dir / "sweep/b";
  put(dir / "sweep/index.csv", "name,state\na,finished\nb,running\nc,queued\n");
  const system::DirectoryLock sweeping(dir / "sweep");
  const auto watching = watch();
  ASSERT_TRUE(watching->read_until("1 finished, 1 running; so far, lowest validation loss: a"));
  EXPECT_THAT(page(), HasSubstr(kRefresh));
  EXPECT_THAT(page(), HasSubstr("<noscript><meta http-equiv=\"refresh\" content=\"5\">"));
  run::RunStatus status = run::read_status(open);
  status.state = run::RunState::finished;
  run::write_status(open, status);
  ASSERT_TRUE(watching->read_until("2 finished; lowest validation loss: b 2.2311, 0.1000 below a"));
  EXPECT_THAT(page(), HasSubstr(kRefresh)) << "a run is queued";
  write("c", 2.1, run::RunState::finished);
  put(dir / "sweep/index.csv", "name,state\na,finished\nb,finished\nc,finished\n");
  const Outcome outcome = watching->wait();
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\nreport: live.html\n"));
  EXPECT_THAT(page(), Not(HasSubstr(kRefresh)));
  EXPECT_THAT(page(), Not(HasSubstr("<noscript><meta")));
  EXPECT_THAT(page(), HasSubstr("lowest validation loss: c 2.1311"));
}

TEST_F(ReportWatch, waits_for_the_first_run_and_leaves_a_final_page_on_ctrl_c) {
  const auto watching = watch();
  ASSERT_TRUE(watching->read_until("waiting for the first run"));
  EXPECT_FALSE(fs::exists(dir / "live.html"));
  const system::DirectoryLock training = write_running("a", 2.3);
  ASSERT_TRUE(watching->read_until("1 running; no run finished: 1 running"));
  EXPECT_THAT(page(), HasSubstr(kRefresh));
  watching->signal(SIGINT);
  const Outcome outcome = watching->wait();
  EXPECT_EQ(outcome.exit, 130);
  EXPECT_THAT(page(), Not(HasSubstr(kRefresh)));
  EXPECT_THAT(page(), HasSubstr("1 of 1 runs is not finished"));
}

TEST_F(ReportWatch, ends_when_the_last_run_is_killed) {
  write("a", 2.3, run::RunState::finished);
  put(dir / "sweep/index.csv", "name,state\na,finished\nb,running\nc,queued\n");
  std::optional<system::DirectoryLock> training(write_running("b", 2.2));
  const auto watching = watch();
  ASSERT_TRUE(watching->read_until("1 finished, 1 running"));
  training.reset();  // as the system does when a process dies
  const Outcome outcome = watching->wait();
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("1 finished, 1 killed"));
}

TEST_F(ReportWatch, of_complete_runs_is_a_report_and_of_no_directory_an_error) {
  write("a", 2.3, run::RunState::finished);
  EXPECT_EQ(watch()->wait().exit, 0);
  EXPECT_THAT(page(), Not(HasSubstr(kRefresh)));
  const Outcome none = test::run({"report", "swep", "--watch"}, {.directory = dir.path()});
  EXPECT_EQ(none.exit, 66);
  EXPECT_EQ(none.err, "difftape: --watch: swep is no directory; need that of a run or a sweep\n");
}

}  // namespace
}  // namespace difftape::app
