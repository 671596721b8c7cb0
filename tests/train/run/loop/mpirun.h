#pragma once
// Fixture that runs a tiny project in several processes with mpirun.

#include "core/distributed.h"
#include "tests/train/run/loop/tiny.h"

namespace difftape::test {

inline constexpr const char* kMpirun = "/usr/bin/mpirun";

/// A project with four micro-batches of one sequence per step.
struct Mpirun : testing::Test {
  explicit Mpirun(const std::string& kind = "diff_v2") : project(kind) {
    project.config.data.batch_size = 1;
    project.config.train.gradient_accumulation_steps = 4;
    project.config.train.steps = 6;
    project.config.train.eval_interval = 3;
    project.config.train.eval_batches = 3;
    project.config.train.checkpoint_interval = 2;
    project.config.log.param_grad_norms_interval = 1;
    project.config.log.diagnostics_interval = 3;
    project.config.run.out = "run";
  }

  void SetUp() override {
    const bool there = fs::exists(kMpirun) && !distributed::library().empty();
    const char* wanted = std::getenv("DIFFTAPE_TEST_MPI");
    ASSERT_TRUE(there || !wanted) << "openmpi-bin is missing, or the build is without it";
    if (!there) GTEST_SKIP() << "openmpi-bin is not installed, or the build is without it";
  }

  /// Environment for mpirun in a container: runs as root, with more processes than cores.
  Conditions conditions() const {
    Conditions mpirun{.program = kMpirun,
                      .environment = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                      {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                                      {"GTEST_TOTAL_SHARDS", "1"},
                                      {"GTEST_SHARD_INDEX", "0"},
                                      {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                                      {"OMPI_MCA_btl_vader_single_copy_mechanism", "none"},
                                      {"PMIX_MCA_gds", "hash"},
                                      // Concurrent tests must not share a folder.
                                      {"OMPI_MCA_orte_tmpdir_base", (project / "").string()}}};
    return project.here(std::move(mpirun));
  }
  /// Runs `difftape ARGUMENTS` in several processes.
  Outcome together(int processes, std::vector<std::string> arguments,
                   const std::string& program = DIFFTAPE_TEST_PROGRAM) const {
    arguments.insert(arguments.begin(), {"-n", std::to_string(processes), program});
    return run(arguments, conditions());
  }
  /// Runs one shell line per process.
  Outcome each(const std::vector<std::string>& lines) const {
    std::vector<std::string> arguments;
    for (const std::string& line : lines) {
      if (!arguments.empty()) arguments.push_back(":");
      arguments.insert(arguments.end(), {"-n", "1", "/bin/bash", "-c", line});
    }
    return run(arguments, conditions());
  }
  std::string program_with(const std::string& arguments) const {
    return fmt::format("exec {} {}", DIFFTAPE_TEST_PROGRAM, arguments);
  }

  /// Trains tiny.yaml in one process and in several, and compares the runs `one` and `several`.
  void expect_the_bits_of_one(int processes, int exit = 0,
                              const std::string& program = DIFFTAPE_TEST_PROGRAM) {
    project.save();
    Conditions alone = project.here();
    alone.program = program;
    const Outcome one = run({"train", "tiny.yaml", "--out", "one"}, alone);
    ASSERT_EQ(one.exit, exit) << one.err;
    const Outcome several =
        together(processes, {"train", "tiny.yaml", "--out", "several"}, program);
    ASSERT_EQ(several.exit, exit) << several.err;
    expect_the_same_bits("one", "several");
  }
  void expect_the_same_bits(const std::string& a, const std::string& b) const {
    ASSERT_FALSE(measured(project / a).empty());
    EXPECT_EQ(measured(project / a), measured(project / b));
    EXPECT_TRUE(files_in(project / a / "diverged") == files_in(project / b / "diverged"));
    if (fs::exists(project / a / "checkpoints")) {
      EXPECT_TRUE(last_checkpoint(project / a) == last_checkpoint(project / b));
    }
  }
  /// Returns the contents of files by name; empty if the folder does not exist.
  static std::map<std::string, std::string> files_in(const fs::path& folder) {
    std::map<std::string, std::string> files;
    std::error_code missing;
    for (const auto& file : fs::directory_iterator(folder, missing))
      files[file.path().filename()] = contents(file);
    return files;
  }

  TinyProject project;
};

}  // namespace difftape::test
