#include "train/system/exit.h"

#include <csignal>

#include "tests/train/run/loop/tiny.h"
#include "train/run/records/run_files.h"

namespace difftape::run {
namespace {

/// Whatever started the tests may ignore signals; here they have their usual effect.
class StopRequestTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_DFL);
  }
};

TEST_F(StopRequestTest, remembers_the_signal_as_an_exit_code) {
  const system::StopRequest stop;
  EXPECT_EQ(stop.received(), system::Exit::ok);
  std::raise(SIGTERM);
  EXPECT_EQ(stop.received(), system::Exit::sigterm);
  std::raise(SIGINT);
  EXPECT_EQ(stop.received(), system::Exit::sigint);
  std::raise(SIGHUP);
  EXPECT_EQ(stop.received(), system::Exit::sigterm) << "a terminal that closes asks to end";
}

TEST_F(StopRequestTest, leaves_a_signal_ignored_that_was_ignored) {
  std::signal(SIGHUP, SIG_IGN);  // as nohup does
  {
    const system::StopRequest stop;
    std::raise(SIGHUP);
    EXPECT_EQ(stop.received(), system::Exit::ok);
  }
  EXPECT_EQ(std::signal(SIGHUP, SIG_DFL), SIG_IGN);
}

TEST_F(StopRequestTest, the_next_one_knows_nothing_of_signals_before_it) {
  {
    const system::StopRequest stop;
    std::raise(SIGTERM);
  }
  EXPECT_EQ(system::StopRequest().received(), system::Exit::ok);
}

TEST_F(StopRequestTest, an_inner_one_shares_what_the_outer_one_received) {
  const system::StopRequest sweep;
  std::raise(SIGTERM);
  {
    const system::StopRequest run;
    EXPECT_EQ(run.received(), system::Exit::sigterm);
  }
  std::raise(SIGTERM);  // would end the process if the inner one had put the default back
  EXPECT_EQ(sweep.received(), system::Exit::sigterm);
}

TEST_F(StopRequestTest, a_second_interrupt_ends_the_process) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const system::StopRequest stop;
        std::raise(SIGINT);
        std::raise(SIGINT);
      },
      testing::KilledBySignal(SIGINT), "");
}

TEST_F(StopRequestTest, afterwards_signals_end_the_process_again) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        { const system::StopRequest stop; }
        std::raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM), "");
}

TEST_F(StopRequestTest, stops_a_run_after_the_step_under_way) {
  test::TinyProject project;
  const system::StopRequest stop;
  std::raise(SIGTERM);
  EXPECT_EQ(project.train("run"), system::Exit::sigterm);
  const RunStatus status = read_status(project / "run");
  EXPECT_EQ(status.state, RunState::stopped);
  EXPECT_EQ(status.step, 1);
  EXPECT_EQ(status.exit_code, 143);
  EXPECT_EQ(Checkpoint(find_checkpoint(project / "run")).meta().step, 1);
  EXPECT_THAT(project.console.str(),
              testing::EndsWith("stopped at step 1; continue with --resume\n"));
}

TEST_F(StopRequestTest, in_the_last_step_lets_the_run_finish) {
  test::TinyProject project;
  project.config.train.steps = project.config.optim.warmup_steps = 1;
  const system::StopRequest stop;
  std::raise(SIGTERM);
  EXPECT_EQ(project.train("run"), system::Exit::ok);
  EXPECT_EQ(read_status(project / "run").state, RunState::finished);
}

}  // namespace
}  // namespace difftape::run
