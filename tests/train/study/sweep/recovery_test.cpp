// Sweeps with runs that were interrupted at a bad moment or cannot be read.
#include <csignal>

#include "tests/train/study/sweep/sweep_project.h"
#include "train/study/sweep/run_progress.h"
#include "train/system/files.h"

namespace difftape::study {
namespace {

class Recovery : public test::SweepProject {
 protected:
  Recovery()
      : SweepProject(
            "base: tiny.yaml\n"
            "sweep.arms: {softmax: , diff_v1: {model.attention.kind: diff_v1}}\n") {}
  /// Reduces a run to the files that exist before its first status.json.
  void break_off(const std::string& run) {
    for (const auto& entry : fs::directory_iterator(project / "out" / run)) {
      const std::string name = entry.path().filename();
      if (name != "lock" && name != "config.yaml" && name != "env.json") {
        fs::remove_all(entry.path());
      }
    }
    put(project / "out" / run / "metrics.jsonl", "");
    put(project / "out" / run / "stdout.log", "");
    put(project / "out" / run / "status.json.tmp", "{");
  }
};

TEST_F(Recovery, a_run_killed_before_its_first_status_restarts) {
  ASSERT_EQ(sweep().exit, 0);
  const std::string whole = measured(project / "out/diff_v1");
  break_off("diff_v1");
  EXPECT_THAT(sweep({"--dry-run"}).out, testing::ContainsRegex("\ndiff_v1 .* new *\n"));
  const Outcome again = sweep();
  EXPECT_EQ(again.exit, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("diff_v1: started\n"));
  EXPECT_EQ(measured(project / "out/diff_v1"), whole);
  EXPECT_FALSE(fs::exists(project / "out/diff_v1/status.json.tmp"));
}

TEST_F(Recovery, a_run_that_left_only_its_lock_restarts) {
  fs::create_directories(project / "out/softmax");
  put(project / "out/softmax/lock", "");
  const Outcome outcome = sweep();
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_EQ(state("softmax"), run::RunState::finished);
}

TEST_F(Recovery, a_run_that_is_not_selected_is_not_touched_and_the_others_are_compared) {
  ASSERT_EQ(sweep().exit, 0);
  break_off("diff_v1");
  const Outcome outcome = sweep({"--arms", "softmax"});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\nreport: out/report.html\n"));
  EXPECT_TRUE(fs::exists(project / "out/diff_v1/status.json.tmp"));
}

TEST_F(Recovery, a_run_that_another_process_just_started_is_not_touched) {
  ASSERT_EQ(sweep().exit, 0);
  break_off("diff_v1");
  const system::DirectoryLock held(project / "out/diff_v1");
  EXPECT_THAT(test::error(74, sweep()), HasSubstr("out/diff_v1: another process is training here"));
  EXPECT_TRUE(fs::exists(project / "out/diff_v1/status.json.tmp"));
}

TEST_F(Recovery, an_unreadable_status_fails_one_run_and_not_the_sweep) {
  ASSERT_EQ(sweep({"--arms", "diff_v1"}).exit, 0);
  put(project / "out/diff_v1/status.json", "{\"state\": \"fin");
  const Outcome outcome = sweep();
  EXPECT_EQ(outcome.exit, 65) << outcome.err;
  EXPECT_EQ(state("softmax"), run::RunState::finished);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("left out: out/diff_v1/status.json is damaged"),
                                 HasSubstr("\n  diff_v1: out/diff_v1/status.json is damaged"),
                                 HasSubstr("remove out/diff_v1 to train it from the start\n")));
  EXPECT_THAT(contents(project / "out/runs.csv"), HasSubstr("\ndiff_v1,diff_v1,1,0.01,failed,"));
  EXPECT_EQ(sweep({"--arms", "softmax"}).exit, 0) << "of those selected none failed";
}

TEST_F(Recovery, metrics_without_a_status_are_not_removed) {
  ASSERT_EQ(sweep().exit, 0);
  fs::remove(project / "out/diff_v1/status.json");
  const std::string before = contents(project / "out/diff_v1/metrics.jsonl");
  const Outcome outcome = sweep();
  EXPECT_EQ(outcome.exit, 66) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("diff_v1: out/diff_v1 is not a run directory"));
  EXPECT_EQ(contents(project / "out/diff_v1/metrics.jsonl"), before);
}

TEST_F(Recovery, a_failure_to_write_the_report_sets_the_exit_code) {
  fs::create_directories(project / "out/report.html");
  put(project / "out/report.html/mine", "");
  const Outcome outcome = sweep();
  EXPECT_EQ(outcome.exit, 74) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\nno comparison: cannot write out/report.html"));
}

TEST(Conclude, a_worker_killed_by_the_signal_of_the_sweep_was_stopped) {
  const ScratchDir dir;
  for (const int signal : {SIGINT, SIGTERM}) {
    RunProgress stopped, failed, crashed;
    finish(dir.path(), {0, signal}, signal, "killed", stopped);
    EXPECT_EQ(stopped.state, run::RunState::stopped);
    EXPECT_EQ(static_cast<int>(stopped.exit), 128 + signal);
    EXPECT_EQ(stopped.error, "stopped at step 0");
    finish(dir.path(), {0, signal}, 0, "killed", failed);
    EXPECT_EQ(failed.state, run::RunState::failed);
    EXPECT_EQ(failed.exit, system::Exit::stopped_early);
    finish(dir.path(), {0, SIGSEGV}, signal, "killed", crashed);
    EXPECT_EQ(crashed.state, run::RunState::failed);
    EXPECT_EQ(crashed.error, "killed");
  }
}

}  // namespace
}  // namespace difftape::study
