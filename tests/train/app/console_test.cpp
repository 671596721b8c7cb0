// What reaches a reader of the console, and what happens when there is none any more.
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>

#include "tests/train/run/loop/tiny.h"

namespace difftape::app {
namespace {

using test::Outcome;
using test::TinyProject;
using testing::HasSubstr;

/// The exit code of the first program of `difftape <arguments> | head -1`, or 128 + its signal.
int into_head(const TinyProject& project, const std::string& arguments) {
  const std::string command = fmt::format(
      "cd '{}' && OMP_NUM_THREADS=1 bash -c '{} {} 2>errors | head -1 >first; exit "
      "${{PIPESTATUS[0]}}'",
      project.path().string(), DIFFTAPE_TEST_PROGRAM, arguments);
  return WEXITSTATUS(std::system(command.c_str()));
}

TEST(Console, training_goes_on_to_its_end_without_a_reader_and_its_log_is_complete) {
  TinyProject project;
  project.config.train.steps = 60;
  project.save();
  EXPECT_EQ(into_head(project, "train tiny.yaml"), 0);
  EXPECT_EQ(test::contents(project / "errors"), "");
  EXPECT_EQ(test::contents(project / "first").find("bigram entropy"), 0u);
  const std::string log = test::contents(project / "runs/tiny/stdout.log");
  EXPECT_THAT(log, HasSubstr("\nstep 60/60 "));
  EXPECT_THAT(log, HasSubstr("finished; results are in runs/tiny\n"));
}

TEST(Console, a_sweep_goes_on_too) {
  const TinyProject project;
  std::ofstream(project / "sweep.yaml") << "base: tiny.yaml\nsweep: {seeds: [1, 2]}\n";
  EXPECT_EQ(into_head(project, "sweep sweep.yaml --jobs 1"), 0);
  EXPECT_EQ(test::contents(project / "errors"), "");
  EXPECT_TRUE(std::filesystem::exists(project / "runs/sweep/report.html"));
}

TEST(Console, other_commands_end_quietly) {
  const TinyProject project;
  EXPECT_EQ(into_head(project, "config schema"), 128 + SIGPIPE);
  EXPECT_EQ(test::contents(project / "errors"), "");
}

TEST(Console, no_number_is_printed_as_minus_nan) {
  TinyProject project;
  project.config.optim.lr = 1e30;
  project.config.optim.max_grad_norm = 0;
  project.config.optim.warmup_steps = 0;
  project.save();
  std::ofstream(project / "sweep.yaml")
      << "base: tiny.yaml\nsweep: {seeds: [1, 2], arms: {a: {}, b: {optim.lr: 0.01}}}\n";
  std::string printed;
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"train", "tiny.yaml"},
           {"sweep", "sweep.yaml"},
           {"replay", "runs/tiny/diverged/step-00000002.h5"},
           {"report", "runs/sweep", "--svg", "lr.svg", "--out", "r.html"},
           {"train", "tiny.yaml", "--overfit", "--set", "model.init.projection_std=1.0e20"}}) {
    const Outcome outcome = project.difftape(command);
    printed += outcome.out + outcome.err;
  }
  EXPECT_THAT(printed, HasSubstr("loss nan"));
  EXPECT_THAT(printed, testing::Not(HasSubstr("-nan")));
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(project.path())) {
    if (!entry.is_regular_file() || entry.path().extension() == ".h5") continue;
    EXPECT_EQ(test::contents(entry.path()).find("-nan"), std::string::npos) << entry.path();
    ++files;
  }
  EXPECT_GT(files, 20);
}

}  // namespace
}  // namespace difftape::app
