// `difftape runs` as a user runs it.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/support/scratch.h"
#include "tests/train/app/program.h"
#include "tests/train/study/compare/synthetic_run.h"
#include "train/system/files.h"
#include "train/system/json.h"

namespace difftape::app {
namespace {

namespace fs = std::filesystem;
using test::contents;
using test::Outcome;
using test::put;
using test::SyntheticRun;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

class RunsCommand : public testing::Test {
 protected:
  fs::path write(const std::string& to, SyntheticRun run) {
    run.steps = 100;
    fs::create_directories((dir / to).parent_path());
    return test::write_run(dir / to, run);
  }
  Outcome difftape(const std::vector<std::string>& arguments) {
    return test::run(arguments, {.directory = dir.path()});
  }
  /// The lines of what is printed.
  std::vector<std::string> lines(const std::vector<std::string>& arguments) {
    const Outcome outcome = difftape(arguments);
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    std::istringstream text(outcome.out);
    std::vector<std::string> found;
    for (std::string line; std::getline(text, line);) found.push_back(line);
    return found;
  }

  test::ScratchDir dir;
};

TEST_F(RunsCommand, lists_each_run_below_with_its_state_and_tells_the_dead_from_the_living) {
  write("runs/done", {.name = "done", .floor = 2});
  write("runs/sweep/far", {.name = "far", .diverge_at = 42});
  write("runs/sweep/later", {.name = "later", .state = run::RunState::stopped});
  write("runs/sweep/dead", {.name = "dead", .state = run::RunState::running});
  const fs::path alive = write("runs/alive", {.name = "alive", .state = run::RunState::running});
  const system::DirectoryLock training(alive);
  const std::vector<std::string> found = lines({"runs"});
  ASSERT_EQ(found.size(), 7u) << "two lines of heads";
  EXPECT_THAT(found[1], MatchesRegex("run +state +step +train +val +loss +grad +updated"));
  EXPECT_THAT(found[2], StartsWith("runs/alive        running   100/100"));
  EXPECT_THAT(found[3], MatchesRegex("runs/done +finished +100/100  1\\.9[0-9]+  2\\.0311 .*"));
  EXPECT_THAT(found[4], StartsWith("runs/sweep/dead   killed    100/100"));
  EXPECT_THAT(found[5], StartsWith("runs/sweep/far    diverged   42/100       -       -"));
  EXPECT_THAT(found[6], StartsWith("runs/sweep/later  stopped   100/100"));
  EXPECT_EQ(lines({"runs", "runs/done", "runs/sweep"}).size(), 6u);
}

TEST_F(RunsCommand, prints_an_object_a_line_for_other_programs) {
  write("runs/far", {.name = "far", .diverge_at = 42, .arm = "v2"});
  write("runs/good", {.name = "good", .floor = 2});
  const std::vector<std::string> found = lines({"runs", "--json", "runs"});
  ASSERT_EQ(found.size(), 2u);
  auto far = system::parse_json(found[0]), good = system::parse_json(found[1]);
  EXPECT_THAT(far["updated"].get<std::string>(), MatchesRegex("20..-..-..T..:..:..Z"));
  far.erase("updated");
  EXPECT_THAT(far.dump(),
              HasSubstr(R"({"dir":"runs/far","name":"far","arm":"v2","state":"diverged","step":42,)"
                        R"("steps":100,"diverged_in":"train/loss","train_loss":null,)"
                        R"("val_loss":null,"loss_spikes":)"));
  EXPECT_EQ(good["diverged_in"], nullptr);
  EXPECT_NEAR(good["val_loss"].get<double>(), 2.0311, 1e-4);
}

TEST_F(RunsCommand, shows_what_a_hostile_name_would_have_a_terminal_do) {
  write("runs/a\nfinished 9/9", {.name = "x"});
  write("runs/b\x1b[2Jc", {.name = "x"});
  write("runs/\xce\xbb", {.name = "x"});
  const std::vector<std::string> found = lines({"runs"});
  ASSERT_EQ(found.size(), 5u);
  EXPECT_THAT(found[2], StartsWith("\"runs/a\\nfinished 9/9\""));
  EXPECT_THAT(found[3], StartsWith("\"runs/b\\x1b[2Jc\""));
  EXPECT_THAT(found[4], StartsWith("runs/\xce\xbb "));
  EXPECT_EQ(lines({"runs", "--json"}).size(), 3u);
}

TEST_F(RunsCommand, leaves_out_what_cannot_be_read_and_says_where_it_is_broken) {
  const fs::path good = write("runs/good", {.name = "good"});
  const fs::path bad = write("runs/bad", {.name = "bad"});
  put(good / "metrics.jsonl", contents(good / "metrics.jsonl") + "{\"step\":101,\"tra");
  put(bad / "metrics.jsonl", "{\"step\":1,\"train/loss\":2.5}\n{\"step\":2,\"train/l\n");
  const Outcome outcome = difftape({"runs"});
  EXPECT_EQ(outcome.exit, 0);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("\nruns/good "), Not(HasSubstr("runs/bad"))))
      << "a line that a crash cut off is no damage";
  EXPECT_THAT(outcome.err,
              StartsWith("difftape: left out: runs/bad/metrics.jsonl:2: not a line of metrics"));
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1);
  fs::remove_all(good);
  const Outcome none = difftape({"runs"});
  EXPECT_EQ(none.exit, 65);
  EXPECT_EQ(none.out, "");
  EXPECT_THAT(none.err, StartsWith("difftape: runs/bad/metrics.jsonl:2: not a line of metrics"));
}

TEST_F(RunsCommand, say_why_a_directory_cannot_be_read) {
  const std::string longer_than_a_name(300, 'x');
  EXPECT_EQ(difftape({"runs", longer_than_a_name}).err,
            "difftape: cannot read " + longer_than_a_name + ": File name too long\n");
  fs::create_symlink("loop", dir / "loop");
  EXPECT_EQ(difftape({"runs", "loop"}).err,
            "difftape: cannot read loop: Too many levels of symbolic links\n");
}

TEST_F(RunsCommand, say_that_a_directory_is_not_theirs_to_read) {
  write("closed/a", {.name = "a"});
  // Root reads anything, so the program runs as somebody else, who may read and execute it.
  const fs::path program = dir / "difftape";
  fs::copy_file(DIFFTAPE_TEST_PROGRAM, program);
  fs::permissions(program, fs::perms(0755));
  fs::permissions(dir.path(), fs::perms(0755));
  for (const int rights : {0, 0444, 0111}) {
    fs::permissions(dir / "closed", fs::perms(rights));
    const Outcome outcome = test::run(
        {"runs", "closed"}, {.directory = dir.path(), .program = program, .unprivileged = true});
    EXPECT_EQ(outcome.exit, 66);
    EXPECT_EQ(outcome.err, "difftape: cannot read closed: Permission denied\n");
  }
  fs::permissions(dir / "closed", fs::perms(0755));
}

TEST_F(RunsCommand, refuses_a_directory_without_runs) {
  EXPECT_EQ(difftape({"runs"}).exit, 66);
  EXPECT_THAT(difftape({"runs"}).err, StartsWith("difftape: there is no directory runs; "));
  fs::create_directory(dir / "empty");
  const Outcome empty = difftape({"runs", "empty"});
  EXPECT_EQ(empty.exit, 66);
  EXPECT_THAT(empty.err, StartsWith("difftape: empty is not a run directory, for it has no "
                                    "status.json, and holds none; "));
}

}  // namespace
}  // namespace difftape::app
