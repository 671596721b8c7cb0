#include "train/study/sweep/sweep.h"

#include <csignal>

#include "tests/train/run/loop/mpirun.h"
#include "tests/train/study/sweep/sweep_project.h"
#include "train/system/exit.h"

namespace difftape::study {
namespace {

/// A sweep of two arms of tiny.yaml and a third one, the baseline, that tests may change.
std::string with_last_arm(const std::string& yaml) {
  return "base: tiny.yaml\n"
         "sweep:\n"
         "  baseline: softmax\n"
         "  arms:\n"
         "    diff_v1: {model.attention.kind: diff_v1}\n"
         "    diff_v2: {model.attention.kind: diff_v2}\n"
         "    " +
         yaml + "\n";
}

class Sweep : public test::SweepProject {
 protected:
  Sweep() : SweepProject(with_last_arm("softmax: {model.attention.kind: softmax}")) {}
};

TEST_F(Sweep, trains_every_arm_and_reports_the_baseline_first) {
  const Outcome outcome = sweep();
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  for (const std::string arm : {"softmax", "diff_v1", "diff_v2"}) {
    EXPECT_THAT(outcome.out, HasSubstr(arm + ": started\n"));
    EXPECT_THAT(outcome.out, HasSubstr(arm + ": finished, val "));
    EXPECT_EQ(state(arm), run::RunState::finished);
    EXPECT_EQ(metrics_lines(project / ("out/" + arm)).size(), 12u);
  }
  const std::string table = outcome.out.substr(outcome.out.find("\n\n"));
  EXPECT_THAT(table, AllOf(HasSubstr("parameters"), HasSubstr("val vs softmax"),
                           HasSubstr("median"), HasSubstr("tokens/s")));
  EXPECT_LT(table.find("\nsoftmax "), table.find("\ndiff_v1 "));
  EXPECT_LT(table.find("\ndiff_v1 "), table.find("\ndiff_v2 "));
  EXPECT_THAT(outcome.out, EndsWith("\nreport: out/report.html\n"));
  const std::string page = contents(project / "out/report.html");
  EXPECT_THAT(page, HasSubstr("\"arms\":[\"softmax\""));
  EXPECT_THAT(page, AllOf(Not(HasSubstr("src=\"http")), Not(HasSubstr("href=\"http"))));
}

TEST_F(Sweep, stores_its_baseline_for_reports) {
  ASSERT_EQ(sweep().exit, 0);
  const std::string printed = test::output(project.difftape({"report", "out"}));
  EXPECT_THAT(printed, HasSubstr("val vs softmax")) << "and not vs diff_v1, the first of the arms";
  fs::rename(project / "out/runs.csv", project / "runs.csv");
  EXPECT_THAT(test::output(project.difftape({"report", "runs.csv"})), HasSubstr("val vs softmax"));
}

TEST_F(Sweep, cannot_compare_or_continue_in_a_new_directory) {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--compare"}, {"--run", "softmax"}}) {
    std::vector<std::string> words{"sweep", "s.yaml", "--out", "auto"};
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_THAT(test::error(64, project.difftape(words)),
                HasSubstr("--out auto names a new directory, but --run and --compare need"));
  }
  EXPECT_FALSE(exists("runs"));
}

TEST_F(Sweep, an_arm_equals_the_run_that_train_writes) {
  ASSERT_EQ(sweep().exit, 0);
  for (const std::string arm : {"softmax", "diff_v1", "diff_v2"}) {
    project.config.model.attention.kind = arm;
    ASSERT_EQ(project.train("alone-" + arm), system::Exit::ok);
    EXPECT_EQ(measured(project / ("out/" + arm)), measured(project / ("alone-" + arm)));
  }
}

TEST_F(Sweep, repeated_keeps_complete_runs_unchanged) {
  const Outcome first = sweep();
  ASSERT_EQ(first.exit, 0);
  EXPECT_THAT(first.out, StartsWith("0 of 3 runs are already trained\n"));
  const auto state_of_arms = [this] {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(project / "out")) {
      if (entry.is_regular_file() && entry.path().extension() != ".html") {
        files[entry.path()] = contents(entry.path());
      }
    }
    return files;
  };
  const auto before = state_of_arms();
  ASSERT_EQ(before.size(), 3u * 8 + 3) << "and runs.csv, summary.txt, lock";
  const Outcome again = sweep();
  EXPECT_EQ(again.exit, 0) << again.err;
  EXPECT_THAT(again.out, StartsWith("3 of 3 runs are already trained\n"));
  EXPECT_THAT(again.out, Not(HasSubstr("started")));
  EXPECT_THAT(again.out, HasSubstr("val vs softmax"));
  EXPECT_EQ(state_of_arms(), before);
}

TEST_F(Sweep, recognizes_its_arms_after_they_were_moved) {
  ASSERT_EQ(sweep().exit, 0);
  fs::rename(project / "out", project / "moved");
  const Outcome again = project.difftape({"sweep", "s.yaml", "--out", "moved"});
  EXPECT_EQ(again.exit, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("3 of 3 runs are already trained\n"));
}

TEST_F(Sweep, interrupted_in_an_arm_resumes_there) {
  make_long();
  for (const int signal : {SIGINT, SIGTERM}) {
    fs::remove_all(project / "out");
    Process process({"sweep", "s.yaml", "--out", "out"}, project.here());
    wait_for("diff_v2");
    process.signal(signal);
    const Outcome outcome = process.wait();
    EXPECT_EQ(outcome.exit, 128 + signal);
    EXPECT_EQ(outcome.err, "");
    EXPECT_THAT(outcome.out,
                AllOf(HasSubstr("\ndiff_v2: stopped at step "),
                      HasSubstr("\n1/3 done  1 queued  1 stopped"),
                      EndsWith("\nsweep stopped; run the same command to resume it\n")));
    EXPECT_EQ(state("diff_v1"), run::RunState::finished);
    EXPECT_EQ(state("diff_v2"), run::RunState::stopped);
    EXPECT_FALSE(exists("out/softmax")) << "nothing is begun after an interrupt";
    EXPECT_FALSE(exists("out/report.html"));
  }
  const Outcome resumed = sweep();
  ASSERT_EQ(resumed.exit, 0) << resumed.err;
  EXPECT_THAT(resumed.out, AllOf(StartsWith("1 of 3 runs are already trained\ndiff_v2: "
                                            "resumes at step "),
                                 HasSubstr("softmax: started\n")));
  EXPECT_TRUE(exists("out/report.html"));
  for (const std::string arm : {"diff_v2", "softmax"}) {
    project.config.model.attention.kind = arm;
    ASSERT_EQ(project.train("alone-" + arm), system::Exit::ok);
    EXPECT_EQ(measured(project / ("out/" + arm)), measured(project / ("alone-" + arm))) << arm;
  }
}

TEST_F(Sweep, interrupted_before_it_starts_trains_nothing) {
  SweepConfig config = load_sweep(project / "s.yaml", {}, project / "out");
  const system::StopRequest terminal;
  std::raise(SIGTERM);
  std::ostringstream console;
  EXPECT_EQ(run_sweep(config, {{}, &console, -1, 1, DIFFTAPE_TEST_PROGRAM}), system::Exit::sigterm);
  EXPECT_FALSE(exists("out/diff_v1"));
}

TEST_F(Sweep, a_diverged_arm_is_a_result_and_the_others_continue) {
  put(project / "s.yaml",
      with_last_arm("softmax: {optim: {lr: 1.0e30, max_grad_norm: 0, warmup_steps: 0}}"));
  const Outcome outcome = sweep();
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_EQ(state("softmax"), run::RunState::diverged);
  EXPECT_EQ(state("diff_v2"), run::RunState::finished);
  EXPECT_THAT(outcome.out, HasSubstr("diverged at step 2 (train/loss), first op: "));
  EXPECT_THAT(contents(project / "out/report.html"), HasSubstr("diverged at step 2 (train/loss)"));
  const Outcome again = sweep();
  EXPECT_EQ(again.exit, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("3 of 3 runs are already trained\n"));
}

TEST_F(Sweep, a_failed_arm_is_reported_and_the_others_continue) {
  put(project / "s.yaml",
      "base: tiny.yaml\nsweep.arms:\n  lost: {data.path: [gone.txt]}\n  softmax: {}\n");
  const std::string gone = (project / "gone.txt").string() + ": no such file\nin data.path\n";
  const Outcome outcome = sweep();
  EXPECT_EQ(outcome.exit, 66);
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("lost: failed: " + gone),
                    EndsWith("\nnot completed; run the same command to retry:\n  lost: " + gone)));
  EXPECT_FALSE(exists("out/lost"));
  EXPECT_EQ(state("softmax"), run::RunState::finished);
  EXPECT_TRUE(exists("out/report.html"));
}

TEST_F(Sweep, stops_before_training_if_no_arm_can_use_its_data) {
  const std::string gone = (project / "gone.txt").string() + ": no such file\nin data.path\n";
  const Outcome listed = sweep({"--set", "data.path=[gone.txt]", "--dry-run"});
  EXPECT_EQ(listed.exit, 0) << listed.err;
  EXPECT_THAT(listed.out, EndsWith("\nthese runs cannot start: " + gone));
  const Outcome outcome = sweep({"--set", "data.path=[gone.txt]"});
  EXPECT_EQ(outcome.exit, 66);
  EXPECT_EQ(outcome.err, "difftape: " + gone);
  EXPECT_EQ(outcome.out, "");
  EXPECT_FALSE(exists("out/softmax"));
  put(project / "s.yaml",
      "base: tiny.yaml\nsweep.arms: {small: {model.vocab_size: 2}, whole: {}}\n");
  EXPECT_THAT(sweep({"--dry-run"}).out, testing::Not(HasSubstr("cannot start")));
}

TEST_F(Sweep, an_arm_directory_with_other_contents_stops_it_before_training) {
  fs::create_directories(project / "out/softmax");
  put(project / "out/softmax/thesis.tex", "precious");
  const Outcome outcome = sweep();
  EXPECT_EQ(outcome.exit, 74);
  EXPECT_EQ(outcome.err,
            "difftape: out/softmax already exists and does not contain this run: cannot read "
            "out/softmax/config.yaml: No such file or directory; remove "
            "it, or choose another directory with --out, or --out auto\n");
  EXPECT_FALSE(exists("out/diff_v1"));
  EXPECT_EQ(contents(project / "out/softmax/thesis.tex"), "precious");
}

TEST_F(Sweep, runs_of_another_configuration_are_rejected) {
  ASSERT_EQ(sweep().exit, 0);
  const std::string before = contents(project / "out/diff_v1/metrics.jsonl");
  EXPECT_THAT(test::error(74, sweep({"--set", "optim.lr=0.5"})),
              HasSubstr("out/diff_v1 already exists and does not contain this run: "
                        "optim.lr is 0.01 there, not 0.5; remove"));
  EXPECT_EQ(contents(project / "out/diff_v1/metrics.jsonl"), before);
}

TEST_F(Sweep, when_killed_makes_its_workers_save_their_state) {
  make_long();
  {
    Process process({"sweep", "s.yaml", "--out", "out"}, project.here());
    wait_for("diff_v1");
    process.signal(SIGKILL);
    EXPECT_EQ(process.wait().exit, -SIGKILL);
  }
  test::becomes_true([&] { return state("diff_v1") != run::RunState::running; });
  EXPECT_EQ(state("diff_v1"), run::RunState::stopped);
  EXPECT_TRUE(exists("out/diff_v1/checkpoints"));
  while (exists("out") && sweep().exit == 74) {  // until the worker has released its directory
  }
  EXPECT_TRUE(exists("out/report.html"));
}

TEST_F(Sweep, a_second_sweep_at_the_same_time_is_rejected) {
  make_long();
  Process process({"sweep", "s.yaml", "--out", "out"}, project.here());
  wait_for("diff_v1");
  EXPECT_EQ(test::error(74, sweep()),
            "difftape: out: another process is training here; wait for it, or choose another "
            "directory with --out\n");
  process.signal(SIGTERM);
  process.wait();
}

TEST_F(Sweep, rejects_out_that_is_a_file_and_keeps_the_file) {
  const std::string text = contents(project / "text.txt");
  EXPECT_THAT(test::error(74, project.difftape({"sweep", "s.yaml", "--out", "text.txt"})),
              HasSubstr("text.txt: Not a directory"));
  EXPECT_EQ(contents(project / "text.txt"), text);
}

TEST_F(Sweep, warns_once_of_a_setting_without_effect_and_names_its_arm) {
  put(project / "s.yaml",
      with_last_arm("softmax: {model.attention.sliding_window: 4096}") + "  seeds: [1, 2]\n");
  EXPECT_EQ(test::error(0, sweep({"--dry-run"})),
            "difftape: warning: arm softmax: model.attention.sliding_window is 4096, longer than "
            "data.seq_len 16, so training hides no token; write a shorter window, or 0\n");
  EXPECT_EQ(sweep({"--dry-run", "--arms", "diff_v1"}).err, "");
}

using SweepByMpirun = test::Mpirun;
TEST_F(SweepByMpirun, is_rejected_because_each_process_would_train_the_same_runs) {
  put(project / "s.yaml", "base: tiny.yaml\nsweep.seeds: [1, 2]\n");
  EXPECT_THAT(test::error(64, together(2, {"sweep", "s.yaml", "--out", "out"})),
              HasSubstr("2 processes of mpirun would all train the same runs"));
  EXPECT_FALSE(fs::exists(project / "out"));
}

}  // namespace
}  // namespace difftape::study
