// `difftape runs` and `difftape diff`, run as programs.
#include "tests/train/app/program.h"
#include "tests/train/run/loop/tiny.h"
#include "tests/train/study/compare/synthetic_run.h"
#include "train/system/files.h"
#include "train/system/json.h"
#include "train/system/number.h"

namespace difftape::app {
namespace {

using test::SyntheticRun;

struct RunsCommand : testing::Test {
  fs::path write(const std::string& to, SyntheticRun run) {
    run.steps = 100;
    fs::create_directories((dir / to).parent_path());
    return test::write_run(dir / to, run);
  }
  Outcome difftape(const std::vector<std::string>& arguments) {
    return test::run(arguments, {.directory = dir.path()});
  }
  /// Returns the lines of the output.
  std::vector<std::string> lines(const std::vector<std::string>& arguments) {
    const std::string outcome = test::output(difftape(arguments));
    std::istringstream text(outcome);
    std::vector<std::string> found;
    for (std::string line; std::getline(text, line);) found.push_back(line);
    return found;
  }

  ScratchDir dir;
};

TEST_F(RunsCommand, lists_each_run_with_its_state_and_detects_killed_runs) {
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

TEST_F(RunsCommand, names_runs_that_lost_their_status_or_steps) {
  write("runs/good", {.name = "good"});
  fs::remove(write("runs/lost", {.name = "lost"}) / "status.json");
  const fs::path cut = write("runs/cut", {.name = "cut"}) / "metrics.jsonl";
  std::string text = contents(cut);
  std::size_t end = 0;
  for (int line = 0; line < 3; ++line) end = text.find('\n', end) + 1;
  put(cut, text.substr(0, end));
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"runs"}, {"report", "runs", "--out", "report.html"}}) {
    const Outcome listed = difftape(command);
    EXPECT_EQ(listed.exit, 0);
    const std::string all = listed.out + listed.err;
    EXPECT_THAT(all,
                HasSubstr("left out: runs/lost is not a run directory: it has no status.json"));
    EXPECT_THAT(all, HasSubstr("left out: runs/cut/metrics.jsonl: has 3 lines up to step 3, but "
                               "must have one for each of the 100 steps in status.json"));
  }
}

TEST_F(RunsCommand, prints_one_json_object_per_line) {
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

TEST_F(RunsCommand, escapes_control_codes_in_hostile_names) {
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

TEST_F(RunsCommand, omits_unreadable_runs_with_their_location) {
  const fs::path good = write("runs/good", {.name = "good"});
  const fs::path bad = write("runs/bad", {.name = "bad"});
  put(good / "metrics.jsonl", contents(good / "metrics.jsonl") + "{\"step\":101,\"tra");
  put(bad / "metrics.jsonl", "{\"step\":1,\"train/loss\":2.5}\n{\"step\":2,\"train/l\n");
  const Outcome outcome = difftape({"runs"});
  EXPECT_EQ(outcome.exit, 0);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("\nruns/good "), Not(HasSubstr("runs/bad"))))
      << "a line that a crash cut off is not a damage";
  EXPECT_THAT(outcome.err,
              StartsWith("difftape: left out: runs/bad/metrics.jsonl:2: is not a line of metrics"));
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1);
  fs::remove_all(good);
  const Outcome none = difftape({"runs"});
  EXPECT_EQ(none.exit, 65);
  EXPECT_EQ(none.out, "");
  EXPECT_THAT(none.err, StartsWith("difftape: runs/bad/metrics.jsonl:2: is not a line of metrics"));
}

TEST_F(RunsCommand, explains_why_a_directory_cannot_be_read) {
  const std::string longer_than_a_name(300, 'x');
  EXPECT_EQ(difftape({"runs", longer_than_a_name}).err,
            "difftape: cannot read " + longer_than_a_name + ": File name too long\n");
  fs::create_symlink("loop", dir / "loop");
  EXPECT_EQ(difftape({"runs", "loop"}).err,
            "difftape: cannot read loop: Too many levels of symbolic links\n");
}

TEST_F(RunsCommand, reports_a_directory_without_permission) {
  write("closed/a", {.name = "a"});
  // Root can read anything, so the program runs as another user, who may read and execute it.
  const fs::path program = dir / "difftape";
  fs::copy_file(DIFFTAPE_TEST_PROGRAM, program);
  fs::permissions(program, fs::perms(0755));
  fs::permissions(dir.path(), fs::perms(0755));
  for (const int rights : {0, 0444, 0111}) {
    fs::permissions(dir / "closed", fs::perms(rights));
    EXPECT_EQ(test::error(66, test::run({"runs", "closed"}, {.directory = dir.path(),
                                                             .program = program,
                                                             .unprivileged = true})),
              "difftape: cannot read closed: Permission denied\n");
  }
  fs::permissions(dir / "closed", fs::perms(0755));
  // A closed folder among others is an error, too, because the list would lack its runs.
  for (const char* name : {"all/a", "all/m/b", "all/z"}) write(name, {.name = name});
  fs::permissions(dir / "all/m", fs::perms(0));
  EXPECT_EQ(test::error(
                66, test::run({"runs", "all"},
                              {.directory = dir.path(), .program = program, .unprivileged = true})),
            "difftape: cannot read all/m: Permission denied\n");
  fs::permissions(dir / "all/m", fs::perms(0755));
  fs::create_directories(dir / "run/checkpoints");
  fs::permissions(dir / "run/checkpoints", fs::perms(0));
  EXPECT_EQ(test::error(
                66, test::run({"eval", "run"},
                              {.directory = dir.path(), .program = program, .unprivileged = true})),
            "difftape: cannot read run/checkpoints: Permission denied\n");
  fs::permissions(dir / "run/checkpoints", fs::perms(0755));
}

TEST_F(RunsCommand, rejects_a_directory_without_runs) {
  EXPECT_EQ(test::error(66, difftape({"runs"})),
            "difftape: no runs in ./runs yet; train one with difftape train CONFIG\n");
  fs::create_directory(dir / "empty");
  const Outcome empty = difftape({"runs", "empty"});
  EXPECT_EQ(empty.exit, 66);
  EXPECT_THAT(
      empty.err,
      StartsWith(
          "difftape: empty neither is a run directory, which has status.json, nor contains any; "));
}

class DiffCommand : public RunsCommand {};

TEST_F(DiffCommand, shows_differing_keys_metrics_and_first_steps) {
  write("a", {.name = "a", .seed = 1, .lr = "0.001"});
  write("b", {.name = "a", .floor = 2.4, .seed = 1, .lr = "0.002", .layers = 1});
  const Outcome outcome = difftape({"diff", "a", "b"});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out, StartsWith("configuration  A      B\n"
                                      "optim.lr       0.001  0.002\n"
                                      "\n"));
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("100 steps in both, 0 only in A, 0 only in B\n"),
                                 HasSubstr("logged only in B: act/kurtosis/... "),
                                 Not(HasSubstr("tokens_per_sec"))));
  const auto logged = [&](const char* run) {
    return system::json_number(
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

TEST_F(DiffCommand, of_trained_runs_finds_where_they_diverge) {
  TinyProject project;
  ASSERT_EQ(project.train("a"), system::Exit::ok);
  ASSERT_EQ(project.train("again"), system::Exit::ok);
  project.config.optim.warmup_steps = 6;
  ASSERT_EQ(project.train("b"), system::Exit::ok);
  const Outcome same = project.difftape({"diff", "a", "again", "--exit-code"});
  EXPECT_EQ(same.exit, 0) << same.err;
  EXPECT_THAT(same.out, AllOf(StartsWith("configuration: equal\n"),
                              HasSubstr("12 steps in both, 0 only in A, 0 only in B\n"
                                        "all metrics of both are bitwise equal at these steps\n")));
  const Outcome other = project.difftape({"diff", "a", "b", "--exit-code"});
  EXPECT_EQ(other.exit, 1) << other.err;
  EXPECT_THAT(other.out, HasSubstr("optim.warmup_steps  5  6\n"));
  EXPECT_THAT(other.out, testing::ContainsRegex("\n +1  optim/lr +0\\.00"));
  EXPECT_THAT(other.out,
              testing::ContainsRegex("\nand [0-9]+ of other layers, heads and parameters; --all "));
  EXPECT_THAT(project.difftape({"diff", "a", "b", "--all"}).out, Not(HasSubstr("--all")));
  EXPECT_EQ(project.difftape({"diff", "a", "b"}).exit, 0);
}

TEST_F(DiffCommand, rejects_other_directories_and_damaged_runs) {
  write("a", {.name = "a"});
  const fs::path b = write("b", {.name = "b"});
  fs::create_directory(dir / "empty");
  EXPECT_EQ(difftape({"diff", "a"}).exit, 64);
  EXPECT_EQ(test::error(66, difftape({"diff", "a", "empty"})),
            "difftape: empty is not a run directory: it has no status.json; give the directory of "
            "a run\n");
  EXPECT_EQ(difftape({"diff", "gone", "a"}).err,
            "difftape: gone: no such file or directory; give a run directory, the --out of "
            "difftape train\n");
  put(b / "metrics.jsonl", "{\"step\":1,\"train/l\n");
  EXPECT_EQ(difftape({"diff", "a", "b"}).exit, 65);
  put(b / "metrics.jsonl", "");
  const Outcome empty = difftape({"diff", "a", "b", "--exit-code"});
  EXPECT_EQ(empty.exit, 1);
  EXPECT_THAT(empty.out, HasSubstr("0 steps in both, 100 only in A, 0 only in B\n"));
}

TEST_F(DiffCommand, keeps_a_hostile_name_or_value_on_its_line) {
  write("a", {.name = "a", .config = {{"run.arm", "\"x\\ny\""}}});
  const fs::path b = write("b", {.name = "a"});
  put(b / "env.json",
      R"({"format_version": 3, "command": [], "build": {"k\u001b[1m": 1, "version": "0.1.0"}})");
  put(b / "metrics.jsonl", "{\"step\":1,\"evil\\u001b[2J\\nname\":1}\n");
  EXPECT_THAT(test::output(difftape({"diff", "a", "b"})),
              AllOf(HasSubstr("\"build/k\\x1b[1m\""), HasSubstr("\"x\\ny\""),
                    HasSubstr("\"evil\\x1b[2J\\nname\""), Not(HasSubstr("\x1b"))));
}

}  // namespace
}  // namespace difftape::app
