// `difftape report`, run as a program on complete and damaged runs.
#include "tests/train/app/program.h"
#include "tests/train/study/compare/claims/two_arms.h"
#include "tests/train/study/compare/synthetic_run.h"
#include "train/system/files.h"

namespace difftape::app {
namespace {

using test::SyntheticRun;

struct ReportCommand : testing::Test {
  void SetUp() override { fs::create_directory(dir / "sweep"); }

  /// Writes two arms at two learning rates with three seeds.
  void write_sweep() {
    for (const char* kind : {"softmax", "diff_v2"}) {
      for (const char* lr : {"0.001", "0.01"}) {
        for (const Index seed : {1, 2, 3}) {
          const bool v2 = kind == std::string("diff_v2");
          write({.name = fmt::format("{}-lr{}-seed{}", kind, lr, seed),
                 .kind = kind,
                 .floor = (v2 ? 2.2 : 2.3) + 0.01 * static_cast<double>(seed),
                 .seed = seed,
                 .arm = kind,
                 .lr = lr});
        }
      }
    }
  }
  fs::path write(SyntheticRun run) {
    run.steps = 100;
    return test::write_run(dir / ("sweep/" + run.name), run);
  }
  Outcome report(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "report");
    return test::run(arguments, {.directory = dir.path()});
  }

  ScratchDir dir;
};

TEST_F(ReportCommand,
       of_a_sweep_directory_prints_arms_and_verdicts_and_writes_what_a_sweep_writes) {
  write_sweep();
  put(dir / "mine.yaml", test::kClaims);
  const Outcome outcome = report({"sweep", "--claims", "mine.yaml"});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("6 finished"), HasSubstr("lr sensitivity"),
                                 HasSubstr("final loss vs diff_v2"), HasSubstr("-> ")));
  EXPECT_THAT(outcome.out, HasSubstr("not tested, no arm is named diff_v1; did you mean"));
  EXPECT_THAT(outcome.out, EndsWith("\nreport: report/report.html\n"));
  EXPECT_THAT(contents(dir / "report/lr_optimum.csv"),
              AllOf(StartsWith("arm,model.d_model,parameters,lr_star,low,high,loss,"
                               "seeds,reason\n"),
                    HasSubstr("\ndiff_v2,"), HasSubstr("\nsoftmax,")));
  EXPECT_THAT(contents(dir / "report/report.html"), HasSubstr("<html"));
  EXPECT_THAT(contents(dir / "report/verdicts.csv"),
              AllOf(HasSubstr("claim,endpoint"), HasSubstr("\nv2_loss,")));
  fs::create_directory(dir / "mine");
  put(dir / "mine/lr_optimum.csv", "precious");
  EXPECT_THAT(test::error(74, report({"sweep", "--out", "mine"})),
              HasSubstr("mine contains files, but no report.html of difftape"));
  EXPECT_EQ(contents(dir / "mine/lr_optimum.csv"), "precious");
}

TEST_F(ReportCommand, compares_with_the_baseline_that_the_sweep_stored) {
  write_sweep();
  put(dir / "sweep/runs.csv",
      "name,arm,seed,lr,state,step,steps,parameters,tokens_per_step,baseline\n"
      "x,diff_v2,1,0.001,finished,100,100,820224,512,softmax\n");
  EXPECT_THAT(report({"sweep"}).out, HasSubstr("final loss vs softmax"));
  EXPECT_THAT(report({"sweep", "--baseline", "diff_v2"}).out, HasSubstr("final loss vs diff_v2"));
}

TEST_F(ReportCommand, judges_the_claims_of_the_sweep_and_none_without_them) {
  write_sweep();
  const Outcome without = report({"sweep"});
  EXPECT_THAT(without.out, Not(HasSubstr("not tested")));
  put(dir / "sweep/claims.yaml", test::kClaims);
  EXPECT_THAT(report({"sweep"}).out, HasSubstr("Claims of sweep/claims.yaml (xxh3 "));
  put(dir / "wrong.yaml", "claims: {a: {arm: x}}");
  EXPECT_THAT(test::error(78, report({"sweep", "--claims", "wrong.yaml"})),
              HasSubstr("wrong.yaml:1:13: error: claims.a: has no 'statement'"));
  EXPECT_EQ(report({"sweep", "--claims", "none.yaml"}).exit, 66);
}

TEST_F(ReportCommand, of_several_sweeps_judges_the_claims_of_the_first_with_a_note) {
  write_sweep();
  for (const char* name : {"second", "third"}) {
    test::write_run(dir / name / "run", {.name = name, .steps = 100});
  }
  for (const char* name : {"sweep", "second"}) put(dir / name / "claims.yaml", test::kClaims);
  EXPECT_EQ(test::error(0, report({"sweep", "second", "third"})), "") << "the same claims twice";
  put(dir / "third/claims.yaml", std::string("# others\n") + test::kClaims);
  const Outcome outcome = report({"sweep", "second", "third"});
  const std::string note =
      "judging the claims of sweep; judge the claims of third with --claims third/claims.yaml";
  EXPECT_EQ(outcome.err, "difftape: " + note + "\n");
  EXPECT_THAT(outcome.out, HasSubstr("Claims of sweep/claims.yaml (xxh3 "));
  EXPECT_THAT(contents(dir / "report/report.html"),
              HasSubstr("<p class=\"notice\">" + note + "</p>"));
  EXPECT_EQ(report({"sweep", "third", "--claims", "third/claims.yaml"}).err, "")
      << "the file is named";
}

TEST_F(ReportCommand, uses_the_order_of_runs_csv_and_the_named_baseline) {
  write_sweep();
  put(dir / "sweep/runs.csv", "name,arm\nsoftmax-lr0.001-seed1,softmax\n");
  const Outcome indexed = report({"sweep"});
  EXPECT_THAT(indexed.out, HasSubstr("final loss vs softmax"));
  const Outcome named = report({"sweep", "--baseline", "diff_v2"});
  EXPECT_THAT(named.out, HasSubstr("final loss vs diff_v2"));
}

TEST_F(ReportCommand, omits_an_unreadable_run_with_its_location) {
  const fs::path good = write({.name = "good"}), foreign = write({.name = "foreign"}),
                 damaged = write({.name = "damaged"});
  put(foreign / "metrics.jsonl", "step,loss\n1,2.5\n");
  put(damaged / "metrics.jsonl", "{\"step\":1,\"train/loss\":2.5}\n{\"step\":2,\"train/l\n");
  const Outcome outcome = report({"sweep"});
  EXPECT_EQ(outcome.exit, 0);
  EXPECT_THAT(
      outcome.err,
      AllOf(HasSubstr("difftape: left out: sweep/foreign/metrics.jsonl:1: is not a line of "),
            HasSubstr("difftape: left out: sweep/damaged/metrics.jsonl:2: is not a line of ")));
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("good"), Not(HasSubstr("foreign"))));
  fs::remove_all(good);
  fs::remove_all(dir / "report");
  EXPECT_THAT(test::error(65, report({"sweep"})),
              AllOf(HasSubstr("foreign/metrics.jsonl:1"), HasSubstr("damaged/metrics.jsonl:2")));
  EXPECT_FALSE(fs::exists(dir / "report"));
}

TEST_F(ReportCommand, ignores_an_incomplete_line_with_a_note) {
  const fs::path run = write({.name = "cut"});
  put(run / "metrics.jsonl", contents(run / "metrics.jsonl") + "{\"step\":101,\"tra");
  EXPECT_EQ(test::error(0, report({"sweep/cut"})),
            "difftape: sweep/cut/metrics.jsonl: the last line is incomplete and is ignored\n");
}

TEST_F(ReportCommand, shows_a_run_in_progress_and_keeps_it_out_of_the_statistics) {
  for (const Index seed : {1, 2}) {
    write({.name = fmt::format("a-seed{}", seed), .floor = 2, .seed = seed, .arm = "a"});
  }
  const fs::path third = write(
      {.name = "a-seed3", .floor = 9, .seed = 3, .arm = "a", .state = run::RunState::running});
  const Outcome killed = report({"sweep"});
  EXPECT_EQ(killed.err,
            "difftape: sweep/a-seed3: killed after step 100 of 100: no process is training it; "
            "`difftape train sweep/a-seed3 --resume` resumes it; not in the statistics\n");
  EXPECT_THAT(killed.out, HasSubstr("2 finished, 1 killed"));
  const system::DirectoryLock training(third);
  const Outcome outcome = report({"sweep"});
  EXPECT_EQ(outcome.exit, 0);
  EXPECT_EQ(outcome.err,
            "difftape: sweep/a-seed3: not finished after step 100 of 100; not in the statistics\n");
  EXPECT_THAT(outcome.out, HasSubstr("2 finished, 1 running"));
  EXPECT_THAT(outcome.out, HasSubstr(" 2.0311 "));
}

TEST_F(ReportCommand, of_one_seed_has_no_interval_and_no_verdict) {
  write({.name = "softmax"});
  write({.name = "diff_v2", .kind = "diff_v2"});
  put(dir / "mine.yaml", test::kClaims);
  const std::string outcome =
      test::output(report({"sweep/softmax", "sweep/diff_v2", "--claims", "mine.yaml"}));
  EXPECT_THAT(outcome, HasSubstr("not tested, one seed: no interval: v2_loss"));
  EXPECT_THAT(outcome, Not(HasSubstr("nan")));
}

TEST_F(ReportCommand, of_diverged_arms_still_prints_its_tables) {
  for (const char* kind : {"softmax", "diff_v2"}) {
    for (const Index seed : {1, 2, 3}) {
      write({.name = fmt::format("{}-{}", kind, seed),
             .kind = kind,
             .diverge_at = 60,
             .seed = seed,
             .arm = kind});
    }
  }
  put(dir / "mine.yaml", test::kClaims);
  const std::string outcome = test::output(report({"sweep", "--claims", "mine.yaml"}));
  EXPECT_THAT(outcome, HasSubstr("3 diverged at 60, 60, 60"));
  EXPECT_THAT(outcome, HasSubstr("-> not testable here: all runs of diff_v2 and softmax diverged"));
  EXPECT_THAT(outcome, Not(HasSubstr("nan")));
}

TEST_F(ReportCommand, draws_runs_of_different_tasks_together_and_compares_within_each) {
  write({.name = "a"});
  write({.name = "b", .data = "needles"});
  EXPECT_THAT(test::output(report({"sweep"})),
              AllOf(StartsWith("text:\n"), HasSubstr("\nneedles:\n")));
  const std::string page = contents(dir / "report/report.html");
  EXPECT_THAT(page, AllOf(HasSubstr("\"arms\":[\"a (text)\",\"b (needles)\"]"),
                          HasSubstr("<h3>needles</h3>"), HasSubstr("<p>2 runs: 2 arms, 2 tasks.")));
}

TEST_F(ReportCommand, counts_a_duplicate_run_once_and_rejects_a_directory_without_runs) {
  write({.name = "a"});
  test::output(report({"sweep/a", "sweep", "./sweep/a/"}));
  EXPECT_THAT(contents(dir / "report/report.html"), HasSubstr("<p>1 run"));
  fs::create_directory(dir / "empty");
  const Outcome empty = report({"empty"});
  EXPECT_EQ(empty.exit, 66);
  EXPECT_THAT(
      empty.err,
      HasSubstr("empty neither is a run directory, which has status.json, nor contains any"));
}

}  // namespace
}  // namespace difftape::app
