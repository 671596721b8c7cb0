// A run that is killed, or whose calls fail, at any point resumes without repair and ends bitwise
// equal to an undisturbed run.

#include <unistd.h>

#include <array>
#include <csignal>
#include <random>

#include "tests/faults/project.h"

namespace difftape::test {
namespace {

/// As many as it takes for every optimizer in every precision, of which there are four. These are
/// enough for every attention kind and data type, too.
std::size_t count_of_runs() {
  constexpr std::size_t kPrecisions = 4, kOptimizers = kNames<OptimizerKind>.size();
  static_assert(kOptimizers % 2 == 1, "else runs with equal optimizers share few precisions");
  return std::max(
      {kPrecisions * kOptimizers, attention_kinds().size(), kNames<run::DataKind>.size()});
}

/// The run that is next in turn, made when it is first asked for.
DisturbedRun& run_of(std::size_t number) {
  static std::vector<std::unique_ptr<DisturbedRun>> all(count_of_runs());
  std::unique_ptr<DisturbedRun>& run = all[number % all.size()];
  if (!run) run = std::make_unique<DisturbedRun>(static_cast<int>(number % all.size()));
  return *run;
}

bool tolerated(const std::string& action) { return action == "EINTR" || action == "short"; }

/// The exit code that a run must have after a fault.
void expect_exit(const DisturbedRun& run, const Fault& fault) {
  const int exit = run.outcome().exit;
  const bool kill = fault.action == "before" || fault.action == "after";
  const bool reached = fault.at <= static_cast<long>(run.calls().size());
  if (kill) {
    EXPECT_EQ(exit, reached ? -SIGKILL : 0);
  } else if (tolerated(fault.action)) {
    EXPECT_EQ(exit, 0) << run.outcome().err;
  } else {  // what cannot be removed stays, and what is a copy may be missing
    EXPECT_TRUE(exit == 0 || exit == 74) << exit << run.outcome().err;
    EXPECT_TRUE(exit == 0 || !run.outcome().err.empty());
  }
}

/// Runs, and calls of theirs, from 1: long each number of a call in one run, short some, other ones
/// for each action.
std::vector<std::pair<std::size_t, long>> places(const std::string& action) {
  const auto calls_of = [](std::size_t run) {
    return static_cast<long>(run_of(run).calls().size());
  };
  std::vector<std::pair<std::size_t, long>> found;
  if (!torture()) {
    std::seed_seq seed(action.begin(), action.end());
    std::mt19937 random(seed);
    for (int i = 0; i < 4; ++i) {
      const std::size_t run = std::uniform_int_distribution<std::size_t>(1, 1000)(random);
      found.emplace_back(run, std::uniform_int_distribution(1L, calls_of(run))(random));
    }
    return found;
  }
  long most = 0;
  for (std::size_t run = 0; run < count_of_runs(); ++run) most = std::max(most, calls_of(run));
  for (long at = 1; at <= most; ++at) {
    const auto run = static_cast<std::size_t>(at);
    if (at <= calls_of(run)) found.emplace_back(run, at);
  }
  return found;
}

struct Fails : testing::TestWithParam<std::string> {};

TEST_P(Fails, at_any_call_and_the_resumed_run_equals_the_undisturbed_one) {
  long done = 0;
  for (const auto& [number, at] : places(GetParam())) {
    DisturbedRun& run = run_of(number);
    const Fault fault{GetParam(), at, {}};
    SCOPED_TRACE(fmt::format("{} at call {} ({}) of {}", fault.action, at,
                             run.calls()[static_cast<std::size_t>(at - 1)], run.name()));
    run.start(fault);
    expect_exit(run, fault);
    run.resume();
    ++done;
  }
  say(fmt::format("{} at {} calls, as many resumed runs equal", GetParam(), done));
}

INSTANTIATE_TEST_SUITE_P(Calls, Fails,
                         testing::Values("before", "after", "ENOSPC", "EIO", "EINTR", "short",
                                         "full"));

TEST(Killed, at_a_random_instant_a_run_resumes_to_the_undisturbed_one) {
  std::mt19937 random(2);
  const std::size_t kills = torture() ? 500 : count_of_runs();
  for (std::size_t i = 0; i < kills; ++i) {
    DisturbedRun& run = run_of(i);
    const double after = std::uniform_real_distribution(0.0, 1.1 * run.seconds())(random);
    SCOPED_TRACE(fmt::format("{} killed after {:.4f} s", run.name(), after));
    run.start_and_kill(after);
    run.resume();
  }
  say(fmt::format("{} kills at random instants, as many resumed runs equal", kills));
}

TEST(Killed, repeatedly_a_run_still_finishes) {
  std::mt19937 random(3);
  DisturbedRun& run = run_of(1);
  run.start({"before", 40, {}});
  for (long at = 20; at < 60; at += 7) {
    const Outcome outcome = test::run(run.command(), run.conditions({"before", at, {}}));
    EXPECT_TRUE(outcome.exit == -SIGKILL || outcome.exit == 0) << outcome.err;
    expect_no_half_written_file(run.run());
  }
  run.resume();
}

// How the process ends is not judged: libxsmm and libgomp end it themselves where they get no
// memory.
TEST(Memory, that_runs_out_anywhere_leaves_a_run_that_resumes) {
  DisturbedRun& run = run_of(0);
  std::map<int, int> exits;
  const std::uint64_t step = torture() ? 1 << 18 : 8 << 20;
  for (std::uint64_t bytes = 32 << 20; bytes < 112 << 20; bytes += step) {
    SCOPED_TRACE(fmt::format("{} MiB", bytes >> 20));
    run.start({}, {.memory = bytes});
    exits[run.outcome().exit] += 1;
    run.resume();
  }
  EXPECT_GE(exits.size(), 2U) << "memory ran out at some limit and not at another";
  std::string text;
  for (const auto& [exit, count] : exits)
    text += fmt::format(", {} times exit code {}", count, exit);
  say("too little memory" + text);
}

TEST(Clock, that_jumps_by_years_changes_no_bit) {
  DisturbedRun& run = run_of(2);
  run.start({}, {.environment = {{"DIFFTAPE_FAULTS_CLOCK", "1"}}});
  EXPECT_EQ(run.outcome().exit, 0) << run.outcome().err;
  run.resume();
  run.start({"before", 60, {}}, {.environment = {{"DIFFTAPE_FAULTS_CLOCK", "1"}}});
  EXPECT_EQ(run.outcome().exit, -SIGKILL);
  run.resume();
}

TEST(Folder, that_cannot_be_written_is_reported_and_keeps_its_files) {
  DisturbedRun& run = run_of(0);
  run.start({"before", 60, {}});
  const auto before = contents(run.run() / "metrics.jsonl");
  // Root writes anywhere, so the program runs as somebody else, who may read.
  fs::permissions(run.run().parent_path().parent_path(), fs::perms(0755));
  const std::vector<fs::path> folders{run.run(), run.run() / "checkpoints"};
  for (const fs::path& folder : folders) fs::permissions(folder, fs::perms(0555));
  Conditions with = run.conditions({});
  with.unprivileged = true;
  EXPECT_THAT(test::error(74, test::run(run.command(), with)), HasSubstr("Permission denied"));
  EXPECT_EQ(contents(run.run() / "metrics.jsonl"), before);
  for (const fs::path& folder : folders) fs::permissions(folder, fs::perms(0755));
  run.resume();
}

TEST(FileLocks, that_the_file_system_lacks_end_no_run_and_lock_no_checkpoint) {
  TinyProject project;
  const auto difftape = [&](const std::vector<std::string>& words, int exit) {
    const Outcome outcome = project.difftape(
        words,
        {.environment = {{"LD_PRELOAD", DIFFTAPE_FAULTS_SHIM}, {"DIFFTAPE_FAULTS_LOCKS", "1"}}});
    EXPECT_EQ(outcome.exit, exit) << outcome.err;
    return outcome;
  };
  const Outcome trained = difftape({"train", "tiny.yaml", "--out", "run"}, 0);
  EXPECT_THAT(trained.err, HasSubstr("warning: run: the file system has no locks (ENOLCK), so two "
                                     "machines can train here at once; start only one\n"));
  difftape({"eval", "run", "--json"}, 0);
  difftape({"train", "run", "--resume"}, 0);
  difftape({"export", "run", "--format", "safetensors", "--out", "m.safetensors"}, 0);
  // A run of a process that lives keeps others out, and one of a process that ended does not.
  std::array<char, 256> machine{};
  ASSERT_EQ(gethostname(machine.data(), machine.size() - 1), 0);
  const std::string stat = contents("/proc/self/stat");  // its field 22 is the time of the start
  std::istringstream fields(stat.substr(stat.rfind(')') + 1));
  std::string began;
  for (int field = 3; field <= 22; ++field) fields >> began;
  put(project / "run/lock", fmt::format("{} {} {}", machine.data(), getpid(), began));
  EXPECT_THAT(difftape({"train", "run", "--resume"}, 74).err,
              HasSubstr("another process is training here"));
  put(project / "run/lock", fmt::format("{} {} {}1", machine.data(), getpid(), began));
  difftape({"train", "run", "--resume"}, 0);  // the number of a process that ended was given again
  put(project / "run/lock", fmt::format("{} 999999999 1", machine.data()));
  difftape({"train", "run", "--resume"}, 0);
}

}  // namespace
}  // namespace difftape::test
