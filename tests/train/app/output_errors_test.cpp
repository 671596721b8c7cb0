// Outputs that cannot be written or must not be overwritten: exit code 74, and files stay
// unchanged.
#include "tests/train/run/loop/tiny.h"
#include "train/run/records/metrics.h"
#include "train/run/records/run_files.h"

namespace difftape::app {
namespace {

struct Output : testing::Test {
  std::string error(const Words& arguments, test::Conditions conditions = {}) {
    return test::error(74, project.difftape(arguments, std::move(conditions)));
  }

  TinyProject project;
};

TEST_F(Output, a_run_directory_is_never_overwritten) {
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  const std::string metrics = contents(project / "run/metrics.jsonl");
  const std::string status = contents(project / "run/status.json");
  EXPECT_EQ(error({"train", "tiny.yaml", "--out", "run"}),
            "difftape: run exists and holds a run; nothing is overwritten: continue the run with "
            "--resume, or choose another directory with --out, or --out auto\n");
  EXPECT_EQ(contents(project / "run/metrics.jsonl"), metrics);
  EXPECT_EQ(contents(project / "run/status.json"), status);
}

TEST_F(Output, auto_is_the_first_free_directory) {
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(project.difftape({"train", "tiny.yaml", "--out", "auto"}).exit, 0);
  for (const char* name : {"runs/tiny", "runs/tiny-2", "runs/tiny-3"})
    EXPECT_TRUE(fs::exists(project / name / "status.json")) << name;
  put(project / "sweep.yaml", "base: tiny.yaml\nsweep: {seeds: [1]}\n");
  fs::create_directories(project / "runs/sweep");
  put(project / "runs/sweep/mine.txt", "precious");
  const Outcome sweep = project.difftape({"sweep", "sweep.yaml", "--out", "auto"});
  EXPECT_EQ(sweep.exit, 0) << sweep.err;
  EXPECT_TRUE(fs::exists(project / "runs/sweep-2/sweep/status.json"));
  EXPECT_EQ(test::error(64, project.difftape({"train", "tiny.yaml", "--resume", "--out", "auto"})),
            "difftape: --out auto names a new run directory, but --resume needs an existing one; "
            "name it with --out\n");
}

TEST_F(Output, a_folder_with_other_things_or_a_file_is_never_overwritten) {
  fs::create_directory(project / "home");
  put(project / "home/thesis.tex", "precious");
  const std::string rule =
      " exists and is not an empty directory; nothing is overwritten: choose another directory "
      "with --out, or --out auto\n";
  EXPECT_EQ(error({"train", "tiny.yaml", "--out", "home"}), "difftape: home" + rule);
  EXPECT_EQ(contents(project / "home/thesis.tex"), "precious");
  EXPECT_EQ(error({"train", "tiny.yaml", "--out", "text.txt"}), "difftape: text.txt" + rule);
  EXPECT_EQ(contents(project / "text.txt"), test::tiny_text());
  EXPECT_EQ(error({"train", "tiny.yaml", "--out", "text.txt/run"}),
            "difftape: cannot create run directory text.txt/run: Not a directory; choose another "
            "directory with --out\n");
}

TEST_F(Output, below_a_read_only_folder_fails_with_the_reason) {
  fs::create_directory(project / "locked");
  // Root can write anywhere, so the program runs as another user, who may read and execute it.
  const fs::path program = project / "difftape";
  fs::copy_file(DIFFTAPE_TEST_PROGRAM, program);
  fs::permissions(program, fs::perms(0755));
  fs::permissions(project.path(), fs::perms(0755));
  fs::permissions(project / "locked", fs::perms(0555));
  test::Conditions conditions;
  conditions.program = program;
  conditions.unprivileged = true;
  EXPECT_EQ(error({"train", "tiny.yaml", "--out", "locked/run"}, conditions),
            "difftape: cannot create run directory locked/run: Permission denied; choose another "
            "directory with --out\n");
  put(project / "s.yaml", "base: tiny.yaml\nsweep.arms: {a: , b: {optim.lr: 0.5}}\n");
  EXPECT_EQ(error({"sweep", "s.yaml", "--out", "locked/sweep"}, conditions),
            "difftape: cannot create locked/sweep: Permission denied\n");
  fs::permissions(project / "locked", fs::perms(0755));
}

TEST_F(Output, a_disk_too_full_for_a_checkpoint_leaves_the_metrics_and_the_status) {
  project.config.train.checkpoint_interval = 5;
  project.save();
  ASSERT_EQ(project.train("whole"), system::Exit::ok);
  test::Conditions conditions;
  conditions.largest_file = test::last_checkpoint(project / "whole").size() - 1;
  EXPECT_EQ(error({"train", "tiny.yaml", "--out", "run"}, conditions),
            "difftape: cannot write run/checkpoints/step-00000005.h5: File too large\n");
  const run::RunStatus status = run::read_status(project / "run");
  EXPECT_EQ(status.state, run::RunState::failed);
  EXPECT_EQ(status.step, 5);
  EXPECT_EQ(run::read_metrics(project / "run/metrics.jsonl").step,
            (std::vector<double>{1, 2, 3, 4, 5}));
  EXPECT_TRUE(fs::is_empty(project / "run/checkpoints")) << "no half-written file is left";
}

TEST_F(Output, printing_to_a_full_disk_is_an_error) {
  for (const Words& command : {Words{"config", "show", "tiny.yaml"}, Words{"config", "schema"},
                               Words{"plan", "tiny.yaml"}}) {
    test::Conditions conditions;
    conditions.out_file = "/dev/full";
    EXPECT_EQ(
        error(command, conditions),
        "difftape: cannot write all of the standard output; free disk space or redirect it\n");
  }
}

TEST_F(Output, a_run_whose_console_is_a_full_disk_completes) {
  test::Conditions conditions;
  conditions.out_file = "/dev/full";
  error({"train", "tiny.yaml", "--out", "run"}, conditions);
  EXPECT_EQ(run::read_status(project / "run").state, run::RunState::finished);
  EXPECT_THAT(contents(project / "run/stdout.log"), HasSubstr("\nfinished; results are in run\n"));
}

TEST_F(Output, with_closed_or_full_standard_streams_files_and_exit_codes_are_the_same) {
  const auto shell = [this](const std::string& arguments) {
    return test::run({"-c", DIFFTAPE_TEST_PROGRAM + arguments},
                     project.here({.program = "/bin/sh"}));
  };
  EXPECT_EQ(shell(" train tiny.yaml --out open").exit, 0);
  EXPECT_EQ(shell(" train tiny.yaml --out closed <&- >&- 2>&-").exit, 0);
  for (const char* file : {"config.yaml", "checkpoints/step-00000012.h5"})
    EXPECT_EQ(contents(project / "closed" / file), contents(project / "open" / file)) << file;
  EXPECT_EQ(measured(project / "closed"), measured(project / "open"));
  EXPECT_EQ(shell(" train gone.yaml 2>&-").exit, 66);
  EXPECT_EQ(shell(" train gone.yaml 2>/dev/full").exit, 66);
}

TEST_F(Output, a_report_replaces_reports_and_nothing_else) {
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  const std::string metrics = contents(project / "run/metrics.jsonl");
  EXPECT_EQ(error({"report", "run", "--out", "run"}),
            "difftape: run contains files, but no report.html of difftape; choose a new or empty "
            "folder with --out\n");
  EXPECT_EQ(contents(project / "run/metrics.jsonl"), metrics);
  EXPECT_EQ(project.difftape({"report", "run", "--out", "run/metrics.jsonl"}).exit, 74);
  EXPECT_EQ(contents(project / "run/metrics.jsonl"), metrics);
  for (int time = 0; time < 2; ++time) EXPECT_EQ(project.difftape({"report", "run"}).exit, 0);
  EXPECT_THAT(contents(project / "report/report.html"), HasSubstr("<html"));
}

}  // namespace
}  // namespace difftape::app
