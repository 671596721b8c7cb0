// What ps and top call the program, and the workers of a sweep.
#include <csignal>

#include "tests/train/run/loop/tiny.h"

namespace difftape::app {
namespace {

namespace fs = std::filesystem;
using test::TinyProject;

std::string name_of(pid_t process) { return test::contents(fmt::format("/proc/{}/comm", process)); }

std::vector<pid_t> children_of(pid_t process) {
  std::istringstream text(test::contents(fmt::format("/proc/{0}/task/{0}/children", process)));
  return {std::istream_iterator<pid_t>(text), {}};
}

TEST(ProcessName, of_a_training_run_is_difftape) {
  TinyProject project;
  project.config.train.steps = 1'000'000;
  project.save();
  test::Process process({"train", "tiny.yaml", "--out", "run"}, project.here());
  ASSERT_TRUE(process.read_until("val"));
  EXPECT_EQ(name_of(process.id()), "difftape\n");
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait().exit, 143);
}

TEST(ProcessName, of_the_workers_of_a_sweep_is_difftape) {
  TinyProject project;
  project.config.train.steps = 1'000'000;
  project.save();
  test::put(project / "sweep.yaml", "base: tiny.yaml\nsweep: {arms: {a: {}}}\n");
  test::Process process({"sweep", "sweep.yaml", "--out", "sweep", "--jobs", "1"}, project.here());
  ASSERT_TRUE(test::becomes_true([&] { return fs::exists(project / "sweep/a/metrics.jsonl"); }));
  const std::vector<pid_t> workers = children_of(process.id());
  EXPECT_EQ(workers.size(), 1U);
  for (const pid_t worker : workers) EXPECT_EQ(name_of(worker), "difftape\n");
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait().exit, 143);
}

}  // namespace
}  // namespace difftape::app
