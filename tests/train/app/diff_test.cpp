// `difftape diff` as a user runs it.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/support/scratch.h"
#include "tests/train/app/program.h"
#include "tests/train/run/loop/tiny.h"
#include "tests/train/study/compare/synthetic_run.h"

namespace difftape::app {
namespace {

namespace fs = std::filesystem;
using test::Outcome;
using test::put;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class DiffCommand : public testing::Test {
 protected:
  fs::path write(const std::string& name, test::SyntheticRun run) {
    run.steps = 100;
    return test::write_run(dir / name, run);
  }
  Outcome difftape(const std::vector<std::string>& arguments) {
    return test::run(arguments, {.directory = dir.path()});
  }

  test::ScratchDir dir;
};

TEST_F(DiffCommand, says_what_was_asked_for_what_followed_and_from_which_step_on) {
  write("a", {.name = "a", .seed = 1, .lr = "0.001"});
  write("b", {.name = "a", .floor = 2.4, .seed = 1, .lr = "0.002", .layers = 1});
  const Outcome outcome = difftape({"diff", "a", "b"});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out, StartsWith("configuration  A      B\n"
                                      "optim.lr       0.001  0.002\n"
                                      "\n"));
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("100 steps in both, 0 in A alone, 0 in B alone\n"),
                                 HasSubstr("logged in B alone: act/kurtosis/... "),
                                 Not(HasSubstr("tokens_per_sec"))));
  const auto logged = [&](const char* run) {
    return run::number_text(
        run::read_metrics(dir / (std::string(run) + "/metrics.jsonl")).columns["train/loss"][0]);
  };
  ASSERT_NE(logged("a"), logged("b"));
  EXPECT_THAT(outcome.out,
              HasSubstr(fmt::format("differs first at step  metric      A                   B\n"
                                    "                    1  train/loss  {:<18}  {}\n"
                                    "                   10  val/loss    ",
                                    logged("a"), logged("b"))));
  EXPECT_THAT(outcome.out, testing::ContainsRegex("\nA +finished +100/100  2\\.2.*\n"
                                                  "B +finished +100/100  2\\.3"));
}

TEST_F(DiffCommand, of_runs_of_the_program_tells_where_they_part) {
  test::TinyProject project;
  ASSERT_EQ(project.train("a"), system::Exit::ok);
  ASSERT_EQ(project.train("again"), system::Exit::ok);
  project.config.optim.warmup_steps = 6;
  ASSERT_EQ(project.train("b"), system::Exit::ok);
  const Outcome same = project.difftape({"diff", "a", "again", "--exit-code"});
  EXPECT_EQ(same.exit, 0) << same.err;
  EXPECT_THAT(same.out, AllOf(StartsWith("configuration: the same\n"),
                              HasSubstr("12 steps in both, 0 in A alone, 0 in B alone\n"
                                        "no metric of both differs in any bit at these steps\n")));
  const Outcome other = project.difftape({"diff", "a", "b", "--exit-code"});
  EXPECT_EQ(other.exit, 1) << other.err;
  EXPECT_THAT(other.out, HasSubstr("optim.warmup_steps  5  6\n"));
  EXPECT_THAT(other.out, testing::ContainsRegex("\n +1  optim/lr +0\\.00"));
  EXPECT_THAT(other.out,
              testing::ContainsRegex("\nand [0-9]+ of other layers, heads and parameters; --all "));
  EXPECT_THAT(project.difftape({"diff", "a", "b", "--all"}).out, Not(HasSubstr("--all")));
  EXPECT_EQ(project.difftape({"diff", "a", "b"}).exit, 0);
}

TEST_F(DiffCommand, refuses_what_is_no_run_or_is_damaged) {
  write("a", {.name = "a"});
  const fs::path b = write("b", {.name = "b"});
  fs::create_directory(dir / "empty");
  EXPECT_EQ(difftape({"diff", "a"}).exit, 64);
  const Outcome none = difftape({"diff", "a", "empty"});
  EXPECT_EQ(none.exit, 66);
  EXPECT_EQ(none.err,
            "difftape: empty is not a run directory: it has no status.json; give the directory of "
            "a run\n");
  EXPECT_EQ(difftape({"diff", "gone", "a"}).err,
            "difftape: there is no directory gone; give that of a run\n");
  put(b / "metrics.jsonl", "{\"step\":1,\"train/l\n");
  EXPECT_EQ(difftape({"diff", "a", "b"}).exit, 65);
  put(b / "metrics.jsonl", "");
  const Outcome empty = difftape({"diff", "a", "b", "--exit-code"});
  EXPECT_EQ(empty.exit, 1);
  EXPECT_THAT(empty.out, HasSubstr("0 steps in both, 100 in A alone, 0 in B alone\n"));
}

TEST_F(DiffCommand, keeps_a_hostile_name_or_value_on_its_line) {
  write("a", {.name = "a", .config = {{"log.sample_prompt", "\"x\\ny\""}}});
  const fs::path b = write("b", {.name = "a"});
  put(b / "env.json",
      R"({"format_version": 3, "command": [], "build": {"k\u001b[1m": 1, "version": "0.1.0"}})");
  put(b / "metrics.jsonl", "{\"step\":1,\"evil\\u001b[2J\\nname\":1}\n");
  const Outcome outcome = difftape({"diff", "a", "b"});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("\"build/k\\x1b[1m\""), HasSubstr("\"x\\ny\""),
                                 HasSubstr("\"evil\\x1b[2J\\nname\""), Not(HasSubstr("\x1b"))));
}

}  // namespace
}  // namespace difftape::app
