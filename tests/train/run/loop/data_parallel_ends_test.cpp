// Tests the end of distributed runs: one error message, and a run that can be resumed.
#include <chrono>
#include <csignal>

#include "tests/train/run/loop/mpirun.h"
#include "train/run/loop/train_state.h"
#include "train/run/records/run_files.h"

namespace difftape::run {
namespace {

class TogetherEnds : public test::Mpirun {
 protected:
  using Clock = std::chrono::steady_clock;

  TogetherEnds() {
    Config& config = project.config;
    config.train.gradient_accumulation_steps = 2;
    config.log.diagnostics_interval = config.train.eval_interval = 0;
    config.train.steps = 1000;
    project.save();
  }

  /// Trains in two processes and sends one of them a signal after the first checkpoint.
  Outcome signalled(int process, int signal) {
    std::vector<std::string> arguments;
    for (const std::string number : {"0", "1"}) {
      if (!arguments.empty()) arguments.push_back(":");
      const std::string train = program_with("train tiny.yaml");
      const std::string line = fmt::format("echo $$ > pid{}; {}", number, train);
      arguments.insert(arguments.end(), {"-n", "1", "/bin/bash", "-c", line});
    }
    Process mpirun(arguments, conditions());
    const auto is_trained = [&] { return newest_step(project / "run") > 0; };
    if (!test::becomes_true(is_trained)) throw std::runtime_error("no run");
    const Clock::time_point sent = Clock::now();
    kill(std::stoi(contents(project / fmt::format("pid{}", process))), signal);
    Outcome outcome = mpirun.wait();
    EXPECT_LT(Clock::now() - sent, std::chrono::seconds(10)) << "the other process waited on";
    return outcome;
  }

  /// Resumes the run in one process and compares it with an uninterrupted run.
  void expect_it_goes_on() {
    EXPECT_LT(newest_step(project / "run"), project.config.train.steps) << "it ended before";
    const auto resumed = project.difftape({"train", "run", "--resume"});
    ASSERT_EQ(resumed.exit, 0) << resumed.err;
    ASSERT_EQ(project.difftape({"train", "tiny.yaml", "--out", "whole"}).exit, 0);
    expect_the_same_bits("run", "whole");
  }

  /// Expects this exit code, and `text` once for all processes.
  static void expect_one_error(const Outcome& outcome, int exit, const std::string& text) {
    EXPECT_EQ(outcome.exit, exit);
    const size_t at = outcome.err.find(text);
    ASSERT_NE(at, std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find(text, at + 1), std::string::npos) << outcome.err;
    EXPECT_THAT(outcome.out, Not(HasSubstr("step")));
  }
};

TEST_F(TogetherEnds, after_a_kill_and_resumes_from_the_last_checkpoint) {
  for (const int process : {0, 1}) {
    fs::remove_all(project / "run");
    fs::remove_all(project / "whole");
    EXPECT_EQ(signalled(process, SIGKILL).exit, 128 + SIGKILL);
    expect_it_goes_on();
  }
}

TEST_F(TogetherEnds, after_the_same_step_for_a_signal_to_any_process) {
  EXPECT_EQ(signalled(1, SIGTERM).exit, 143);
  EXPECT_EQ(read_status(project / "run").state, RunState::stopped);
  EXPECT_EQ(read_status(project / "run").step, newest_step(project / "run"));
  expect_it_goes_on();
}

TEST_F(TogetherEnds, after_the_same_step_for_a_signal_that_mpirun_forwards) {
  std::vector<std::string> arguments{"-n", "2", DIFFTAPE_TEST_PROGRAM};
  for (const char* each : {"train", "tiny.yaml"}) arguments.emplace_back(each);
  Process mpirun(arguments, conditions());
  ASSERT_TRUE(test::becomes_true([&] { return newest_step(project / "run") > 0; }));
  mpirun.signal(SIGUSR1);
  const Outcome outcome = mpirun.wait();
  EXPECT_EQ(outcome.exit, 143) << outcome.err;
  EXPECT_EQ(read_status(project / "run").state, RunState::stopped);
  EXPECT_EQ(read_env(project / "run").at("machine").at("processes"), 2);
  EXPECT_THAT(outcome.out, Not(HasSubstr("\x1b"))) << "control codes of a terminal";
  expect_it_goes_on();
}

TEST_F(TogetherEnds, at_once_to_overfit) {
  expect_one_error(together(2, {"train", "tiny.yaml", "--overfit"}), 64,
                   "--overfit trains in one process; start it without mpirun");
}

TEST_F(TogetherEnds, if_there_are_more_processes_than_leaves) {
  expect_one_error(together(3, {"train", "tiny.yaml"}), 78,
                   "data.batch_size: a step has 2 sequences, which at most 2 processes can share, "
                   "but 3 were started; start at most 2, or set train.gradient_accumulation_steps "
                   "to 3, for 3 sequences per step");
  EXPECT_FALSE(fs::exists(project / "run"));
}

TEST_F(TogetherEnds, if_one_process_has_another_configuration) {
  const std::string train = program_with("train tiny.yaml ");
  expect_one_error(
      each({train, train + "--set optim.lr=0.5"}), 78,
      "process 1 has a different configuration than process 0: optim.lr is 0.5, not 0.01");
  EXPECT_FALSE(fs::exists(project / "run"));
}

TEST_F(TogetherEnds, if_one_process_has_another_program) {
  const std::string copy =
      fmt::format("cp {} other && printf ' ' >> other && exec ./other ", DIFFTAPE_TEST_PROGRAM);
  expect_one_error(each({program_with("train tiny.yaml"), copy + "train tiny.yaml"}), 64,
                   "process 1 runs a different build of the program than process 0");
}

TEST_F(TogetherEnds, if_one_process_has_no_data_or_other_data) {
  project.config.data.path = {"/proc/self/cwd/text.txt"};  // per process
  project.save();
  const std::string train = program_with("train ../tiny.yaml");
  for (const std::string name : {"a", "b"}) {
    fs::create_directory(project / name);
    put(project / (name + "/text.txt"), test::tiny_text() + name);
  }
  expect_one_error(each({"cd a; " + train, "cd b; " + train}), 65,
                   "process 1 has different data than process 0");
  fs::remove(project / "b/text.txt");
  const auto outcome = each({"cd a; " + train, "cd b; " + train});
  expect_one_error(outcome, 66, "/proc/self/cwd/text.txt: no such file");
  EXPECT_THAT(outcome.err, HasSubstr("\nin process 1 on "));
  fs::remove(project / "a/text.txt");
  expect_one_error(each({"cd a; " + train, "cd b; " + train}), 66,
                   "/proc/self/cwd/text.txt: no such file");
}

TEST_F(TogetherEnds, with_a_full_disk_and_resumes_when_there_is_space) {
  project.config.model.d_model = 64;
  project.config.model.vocab_size = 8192;  // a checkpoint of 12 MB
  project.save();
  const std::string train = program_with("train tiny.yaml");
  const Clock::time_point begin = Clock::now();
  const auto outcome = each({"ulimit -f 8192; " + train, train});  // 8 MB, of which MPI needs 4
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(60)) << "the other process waited on";
  EXPECT_EQ(outcome.exit, 74) << outcome.err;
  EXPECT_THAT(outcome.err, testing::ContainsRegex("difftape: .*step-00000002.h5"));
  EXPECT_EQ(test::count(outcome.err, "difftape: "), 1u) << outcome.err;
  EXPECT_EQ(read_status(project / "run").state, RunState::failed);
  expect_it_goes_on();
}

TEST_F(TogetherEnds, if_the_command_line_is_wrong) {
  expect_one_error(together(2, {"train", "tiny.yaml", "--fast"}), 64, "unknown option '--fast'");
  expect_one_error(together(2, {"train", "gone.yaml"}), 66, "gone.yaml: no such file");
}

TEST(Processes, of_a_program_without_mpi_are_refused) {
  if (!distributed::library().empty()) GTEST_SKIP() << "the build has MPI";
  const TinyProject project;
  EXPECT_THAT(test::error(64, project.difftape({"train", "tiny.yaml"},
                                               {.environment = {{"OMPI_COMM_WORLD_SIZE", "2"}}})),
              HasSubstr("2 processes were started together, and this program is "
                        "built without MPI"));
}

TEST(Processes, that_mpi_does_not_find_are_refused) {
  if (distributed::library().empty()) GTEST_SKIP() << "the build has no MPI";
  const TinyProject project;
  EXPECT_THAT(test::error(64, project.difftape({"train", "tiny.yaml"},
                                               {.environment = {{"PMI_SIZE", "2"}}})),
              testing::ContainsRegex("2 processes were started together, but Open MPI .* finds 1"));
}

TEST(Processes, one_that_is_started_alone_needs_no_mpi) {
  const TinyProject project;
  const auto outcome = project.difftape({"train", "tiny.yaml", "--out", "run"},
                                        {.environment = {{"OMPI_COMM_WORLD_SIZE", "1"}}});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
}

}  // namespace
}  // namespace difftape::run
