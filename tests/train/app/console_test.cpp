// Console output, with and without a reader.
#include <sys/wait.h>

#include <csignal>

#include "tests/train/run/loop/tiny.h"

namespace difftape::app {
namespace {

/// Returns the exit code of difftape in `difftape <arguments> | head -1`, or 128 + its signal.
int into_head(const TinyProject& project, const std::string& arguments) {
  const std::string command = fmt::format(
      "cd '{}' && OMP_NUM_THREADS=1 bash -c '{} {} 2>errors | head -1 >first; exit "
      "${{PIPESTATUS[0]}}'",
      project.path().string(), DIFFTAPE_TEST_PROGRAM, arguments);
  return WEXITSTATUS(std::system(command.c_str()));
}

TEST(Console, training_completes_without_a_reader_and_its_log_is_complete) {
  TinyProject project;
  project.config.train.steps = 60;
  project.save();
  EXPECT_EQ(into_head(project, "train tiny.yaml"), 0);
  EXPECT_EQ(contents(project / "errors"), "");
  EXPECT_EQ(contents(project / "first"), "data.path: 1 of 1 files, 10,001 of 10,001 bytes\n");
  const std::string log = contents(project / "runs/tiny/stdout.log");
  EXPECT_THAT(log, HasSubstr("\nstep 60/60 "));
  EXPECT_THAT(log, HasSubstr("finished; results are in runs/tiny\n"));
}

TEST(Console, a_sweep_completes_without_a_reader) {
  const TinyProject project;
  std::ofstream(project / "sweep.yaml") << "base: tiny.yaml\nsweep: {seeds: [1, 2]}\n";
  EXPECT_EQ(into_head(project, "sweep sweep.yaml --jobs 1"), 0);
  EXPECT_EQ(contents(project / "errors"), "");
  EXPECT_TRUE(fs::exists(project / "runs/sweep/report.html"));
}

TEST(Console, other_commands_end_quietly) {
  const TinyProject project;
  EXPECT_EQ(into_head(project, "config schema"), 128 + SIGPIPE);
  EXPECT_EQ(contents(project / "errors"), "");
}

TEST(Console, no_number_is_printed_as_minus_nan) {
  TinyProject project;
  project.config = test::explosive(project.config);
  project.save();
  std::ofstream(project / "sweep.yaml")
      << "base: tiny.yaml\nsweep:\n  seeds: [1, 2]\n  lr: [1.0e+30, 0.01]\n"
         "  arms: {a: {}, b: {model.attention.kind: diff_v2}}\n";
  std::string printed;
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"train", "tiny.yaml"},
           {"sweep", "sweep.yaml"},
           {"report", "runs/sweep", "--out", "r"},
           {"train", "tiny.yaml", "--overfit", "--set", "model.init.projection_std=1.0e20"}}) {
    const Outcome outcome = project.difftape(command);
    printed += outcome.out + outcome.err;
  }
  EXPECT_THAT(printed, HasSubstr("loss nan"));
  EXPECT_THAT(printed, Not(HasSubstr("-nan")));
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(project.path())) {
    if (!entry.is_regular_file() || entry.path().extension() == ".h5") continue;
    EXPECT_EQ(contents(entry.path()).find("-nan"), std::string::npos) << entry.path();
    ++files;
  }
  EXPECT_GT(files, 20);
}

std::string name_of(pid_t process) { return contents(fmt::format("/proc/{}/comm", process)); }

std::vector<pid_t> children_of(pid_t process) {
  std::istringstream text(contents(fmt::format("/proc/{0}/task/{0}/children", process)));
  return {std::istream_iterator<pid_t>(text), {}};
}

TEST(ProcessName, of_a_training_run_is_difftape) {
  TinyProject project;
  project.config.train.steps = 1'000'000;
  project.save();
  Process process({"train", "tiny.yaml", "--out", "run"}, project.here());
  ASSERT_TRUE(process.read_until("val"));
  EXPECT_EQ(name_of(process.id()), "difftape\n");
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait().exit, 143);
}

TEST(ProcessName, of_the_workers_of_a_sweep_is_difftape) {
  TinyProject project;
  project.config.train.steps = 1'000'000;
  project.save();
  put(project / "sweep.yaml", "base: tiny.yaml\nsweep: {arms: {a: {}}}\n");
  Process process({"sweep", "sweep.yaml", "--out", "sweep", "--jobs", "1"}, project.here());
  ASSERT_TRUE(test::becomes_true([&] { return fs::exists(project / "sweep/a/metrics.jsonl"); }));
  const std::vector<pid_t> workers = children_of(process.id());
  EXPECT_EQ(workers.size(), 1U);
  for (const pid_t worker : workers) EXPECT_EQ(name_of(worker), "difftape\n");
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait().exit, 143);
}

}  // namespace
}  // namespace difftape::app
