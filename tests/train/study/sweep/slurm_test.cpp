// Sweeps on a Slurm cluster of two nodes on this machine (tests/cluster/slurm.sh).
#include "train/study/sweep/sweep.h"

#include "tests/support/sanitizer.h"
#include "tests/train/run/loop/tiny.h"
#include "train/run/checkpoint/checkpoint.h"
#include "train/run/records/run_files.h"

namespace difftape::study {
namespace {

using test::becomes_true;

/// Steps of a run that takes some seconds.
constexpr Index kLongRun = test::kKeepsFreedMemory ? 600 : 3000;

bool is_installed(const std::string& program) {
  const std::string path = std::getenv("PATH") + std::string(":/usr/sbin");
  std::istringstream folders(path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (fs::exists(fs::path(folder) / program)) return true;
  }
  return false;
}

struct Slurm : testing::Test {
  static void SetUpTestSuite() {
    for (const char* program : {"munged", "slurmctld", "slurmd", "sbatch"}) {
      if (!is_installed(program)) return;
    }
    dir = std::make_unique<ScratchDir>();
    started = cluster("start", "2");
  }
  static void TearDownTestSuite() {
    if (dir) cluster("stop");
    dir = nullptr;
  }
  static Outcome cluster(const std::string& command, const std::string& argument = "") {
    return test::run({command, dir->path().string(), argument},
                     {.program = DIFFTAPE_TEST_SOURCE_DIR "/tests/cluster/slurm.sh"});
  }

  // CTest counts a failure in SetUpTestSuite as a skipped test.
  void SetUp() override {
    if (!dir) GTEST_SKIP() << "Slurm is not installed (packages.txt, test)";
    ASSERT_EQ(started.exit, 0) << started.err;
    sweep(12, 3);
  }

  /// Writes s.yaml: softmax and diff_v2 with this many steps and seeds.
  void sweep(Index steps, Index seeds) const {
    std::string list;
    for (Index seed = 1; seed <= seeds; ++seed)
      list += fmt::format("{}{}", seed > 1 ? ", " : "", seed);
    put(project / "s.yaml", fmt::format("base: tiny.yaml\n"
                                        "train: {{steps: {}, checkpoint_interval: 100}}\n"
                                        "sweep:\n"
                                        "  seeds: [{}]\n"
                                        "  arms:\n"
                                        "    softmax: {{}}\n"
                                        "    diff_v2: {{model.attention.kind: diff_v2}}\n",
                                        steps, list));
  }
  Outcome difftape(const Words& arguments) const {
    return project.difftape(arguments, {.environment = {{"SLURM_CONF", *dir / "slurm.conf"}}});
  }
  Outcome slurm(const std::string& program, const Words& arguments) const {
    return test::run(arguments, {.program = "/usr/bin/" + program,
                                 .environment = {{"SLURM_CONF", *dir / "slurm.conf"}}});
  }
  bool both_runs_are_complete() const {
    return run::is_complete(run::read_status(project / "out/softmax").state) &&
           run::is_complete(run::read_status(project / "out/diff_v2").state);
  }
  bool queue_is_empty() const {
    const Outcome jobs = slurm("squeue", {"--noheader"});
    return jobs.exit == 0 && jobs.out.empty();
  }
  std::string state_of_cluster() const {
    return slurm("sinfo", {"--long", "--Node"}).out + slurm("scontrol", {"show", "job"}).out +
           contents(*dir / "slurmctld.log") + contents(*dir / "slurmd-n1.log") +
           contents(*dir / "slurmd-n2.log");
  }
  /// Returns the last step that a run has done.
  Index steps_of(const std::string& run) const {
    std::error_code ignored;
    if (!fs::exists(project / ("out/" + run + "/checkpoints"), ignored)) return 0;
    return run::read_status(project / ("out/" + run)).step;
  }
  void expect_the_bits_of_one_machine() const {
    ASSERT_EQ(difftape({"sweep", "s.yaml", "--out", "here", "--jobs", "2"}).exit, 0);
    for (const auto& entry : fs::directory_iterator(project / "here")) {
      if (!entry.is_directory()) continue;
      const std::string name = entry.path().filename();
      EXPECT_TRUE(measured(project / ("out/" + name)) == measured(entry.path())) << name;
    }
  }

  static std::unique_ptr<ScratchDir> dir;
  static Outcome started;
  TinyProject project;
};
std::unique_ptr<ScratchDir> Slurm::dir;
Outcome Slurm::started;

TEST_F(Slurm, trains_and_compares_all_runs_bitwise_as_one_machine_does) {
  const Outcome outcome = difftape({"sweep", "s.yaml", "--out", "out", "--submit", "slurm"});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("submitted 6 runs as job array"));
  EXPECT_TRUE(becomes_true([&] { return queue_is_empty(); }));
  EXPECT_TRUE(fs::exists(project / "out/report.html"))
      << contents(project / "out/slurm/compare.log");
  EXPECT_THAT(contents(project / "out/summary.txt"), HasSubstr("diff_v2"));
  expect_the_bits_of_one_machine();
  EXPECT_THAT(difftape({"sweep", "s.yaml", "--out", "out", "--submit", "slurm"}).out,
              HasSubstr("nothing to submit"));
}

TEST_F(Slurm, a_preempted_run_saves_its_state_and_resumes) {
  sweep(kLongRun, 1);
  ASSERT_EQ(difftape({"sweep", "s.yaml", "--out", "out", "--submit", "slurm"}).exit, 0);
  ASSERT_TRUE(becomes_true([&] { return steps_of("softmax") > 0; }));
  const std::string array = contents(project / "out/slurm/jobs");
  slurm("scontrol", {"requeue", array.substr(0, array.size() - 1) + "_0"});
  EXPECT_TRUE(becomes_true([&] { return queue_is_empty() && both_runs_are_complete(); }))
      << state_of_cluster();
  EXPECT_NE(contents(project / "out/softmax/stdout.log").find("resuming after step"),
            std::string::npos);
  expect_the_bits_of_one_machine();
}

TEST_F(Slurm, a_failed_node_loses_nothing) {
  sweep(kLongRun, 1);
  ASSERT_EQ(difftape({"sweep", "s.yaml", "--out", "out", "--submit", "slurm"}).exit, 0);
  const auto has_checkpoint = [&](const char* arm) {
    return !run::checkpoints_in(project / fmt::format("out/{}/checkpoints", arm)).empty();
  };
  ASSERT_TRUE(becomes_true([&] { return has_checkpoint("softmax") && has_checkpoint("diff_v2"); }));
  ASSERT_EQ(cluster("fail", "n2").exit, 0);
  EXPECT_TRUE(becomes_true([&] { return queue_is_empty() && both_runs_are_complete(); }))
      << state_of_cluster();
  const std::string logs =
      contents(project / "out/softmax/stdout.log") + contents(project / "out/diff_v2/stdout.log");
  EXPECT_NE(logs.find("resuming after step"), std::string::npos);
  expect_the_bits_of_one_machine();
}

TEST_F(Slurm, does_not_get_the_same_runs_twice) {
  sweep(100000, 1);
  ASSERT_EQ(difftape({"sweep", "s.yaml", "--out", "out", "--submit", "slurm"}).exit, 0);
  EXPECT_THAT(test::error(74, difftape({"sweep", "s.yaml", "--out", "out", "--submit", "slurm"})),
              testing::ContainsRegex("of this sweep is still in the queue|trains there"));
  slurm("scancel", {"--user", std::to_string(getuid())});
  EXPECT_TRUE(becomes_true([&] { return queue_is_empty(); }));
}

TEST_F(Slurm, that_rejects_the_jobs_changes_nothing) {
  EXPECT_THAT(test::error(74, difftape({"sweep", "s.yaml", "--out", "out", "--submit", "slurm",
                                        "--sbatch=--partition=none"})),
              HasSubstr("Slurm rejected the jobs: "));
  EXPECT_FALSE(fs::exists(project / "out/slurm/jobs"));
}

TEST(Clusters, unknown_clusters_and_runs_are_rejected) {
  const TinyProject project;
  put(project / "s.yaml", "base: tiny.yaml\nsweep: {seeds: [1, 2]}\n");
  EXPECT_THAT(test::error(64, project.difftape({"sweep", "s.yaml", "--submit", "pbs"})),
              HasSubstr("must be slurm, the only supported cluster"));
  const Outcome run = project.difftape({"sweep", "s.yaml", "--run", "s-seed3"});
  EXPECT_EQ(run.exit, 64);
  EXPECT_THAT(run.err, HasSubstr("has no such run"));
  const Outcome both = project.difftape({"sweep", "s.yaml", "--run", "s-seed1", "--compare"});
  EXPECT_EQ(both.exit, 64);
}

TEST(Clusters, get_a_script_with_correct_shell_quoting) {
  const std::string script =
      slurm_script({"a", "it's"}, {{"/bin/difftape", "sweep", "my sweep.yaml"}, {}, nullptr});
  EXPECT_THAT(script, HasSubstr("runs=(\n  'a'\n  'it'\\''s'\n)"));
  EXPECT_THAT(script, HasSubstr("'/bin/difftape' 'sweep' 'my sweep.yaml' --run \"${runs[i]}\" &"));
}

}  // namespace
}  // namespace difftape::study
