// A sweep over learning rates with two runs at a time, whose parent, workers or both are killed:
// the same command finishes it, and every run equals an undisturbed one.

#include <csignal>
#include <random>
#include <thread>

#include "tests/faults/project.h"

namespace difftape::test {
namespace {

struct SweepFaults : testing::Test {
  SweepFaults() {
    run::Config& c = project.config;
    c.train.steps = 4;
    c.train.eval_interval = 0;
    c.optim.warmup_steps = 1;
    c.train.checkpoint_interval = 2;
    project.save();
    put(project / "s.yaml",
        "base: tiny.yaml\n"
        "sweep.lr: [1.0e-2, 2.0e-2]\n"
        "sweep.arms: {softmax: , diff_v2: {model.attention.kind: diff_v2}}\n");
    const Outcome outcome = run({});
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    for (const auto& entry : fs::directory_iterator(project / "work/out"))
      if (fs::exists(entry.path() / "status.json")) runs.push_back(entry.path().filename());
    EXPECT_EQ(runs.size(), 4u);
    whole = lasting();
    calls["sweep"] = calls_of({"none", 1, "sweep"});
    calls["worker"] = calls_of({"none", 1, "worker"}) / std::ssize(runs);  // which do the same
  }

  std::vector<std::string> command() const {
    return {"sweep",  (project / "s.yaml").string(),
            "--out",  (project / "work/out").string(),
            "--jobs", "2"};
  }
  Conditions conditions(const Fault& fault) const {
    Conditions with = project.here();
    with.environment.insert(with.environment.end(),
                            {{"GOMP_SPINCOUNT", "10000"},
                             {"LD_PRELOAD", DIFFTAPE_FAULTS_SHIM},
                             {"DIFFTAPE_FAULTS_DIR", (project / "work").string()},
                             {"DIFFTAPE_FAULTS_LOG", (project / "calls.log").string()},
                             {"DIFFTAPE_FAULTS_DO", fault.action},
                             {"DIFFTAPE_FAULTS_AT", std::to_string(fault.at)},
                             {"DIFFTAPE_FAULTS_WORD", fault.word}});
    return with;
  }
  void clear() const {
    fs::remove_all(project / "work");
    fs::create_directory(project / "work");
    fs::remove(project / "calls.log");
  }
  Outcome run(const Fault& fault) const {
    clear();
    return test::run(command(), conditions(fault));
  }
  long calls_of(const Fault& fault) const {
    EXPECT_EQ(run(fault).exit, 0);
    return static_cast<long>(logged_calls(project / "calls.log").size());
  }

  std::map<std::string, std::string> lasting() const {
    std::map<std::string, std::string> all;
    for (const std::string& name : runs) {
      for (auto& [file, text] : lasting_files(project / "work/out" / name)) {
        const std::string key = name + "/" + file;
        // A worker that was asked to stop left a checkpoint of its own.
        if (whole.empty() || whole.contains(key) || !run::step_of_file(file)) all[key] = text;
      }
    }
    return all;
  }

  void finish() {
    // A worker whose parent was killed stops after its step, with a checkpoint.
    while (system::DirectoryLock::is_held(project / "work/out"))
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    for (const std::string& name : runs) expect_no_half_written_file(project / "work/out" / name);
    const Outcome outcome = test::run(command(), project.here());
    ASSERT_EQ(outcome.exit, 0) << outcome.out << outcome.err;
    EXPECT_EQ(lasting(), whole);
    EXPECT_TRUE(fs::exists(project / "work/out/report.html"));
  }

  /// Short a few places, long every one.
  void disturb_each(const std::string& action, const std::string& word) {
    const long all = calls.at(word), step = torture() ? 1 : std::max(1L, all / 4);
    long done = 0;
    for (long at = torture() ? 1 : 1 + all % step; at <= all; at += step, ++done) {
      SCOPED_TRACE(fmt::format("{} at call {} of the {}", action, at, word));
      const Outcome outcome = run({action, at, word});
      const bool reached = std::ssize(logged_calls(project / "calls.log")) >= at;  // as usual
      EXPECT_TRUE(action != "before" || outcome.exit != 0 || !reached) << "nothing was killed";
      finish();
    }
    say(fmt::format("sweep: {} at {} of {} calls of the {}, all runs equal", action, done, all,
                    word));
  }

  TinyProject project;
  std::vector<std::string> runs;
  std::map<std::string, std::string> whole;
  std::map<std::string, long> calls;
};

TEST_F(SweepFaults, the_parent_is_killed) { disturb_each("before", "sweep"); }
TEST_F(SweepFaults, a_worker_is_killed) { disturb_each("before", "worker"); }
TEST_F(SweepFaults, a_call_of_the_parent_fails) { disturb_each("EIO", "sweep"); }
TEST_F(SweepFaults, a_call_of_a_worker_fails) { disturb_each("ENOSPC", "worker"); }

TEST_F(SweepFaults, parent_and_worker_are_killed) {
  std::mt19937 random(4);
  const int kills = torture() ? 60 : 3;
  for (int i = 0; i < kills; ++i) {
    const long at = std::uniform_int_distribution(1L, calls["worker"])(random);
    SCOPED_TRACE(at);
    clear();
    {
      Conditions with = conditions({"before", at, "worker"});
      with.out_file = (project / "printed.txt").string();
      put(with.out_file, "");
      Process process(command(), with);
      std::this_thread::sleep_for(
          std::chrono::milliseconds(std::uniform_int_distribution(1, 600)(random)));
      process.signal(SIGKILL);
      process.wait();
    }
    finish();
  }
  say(fmt::format("sweep: parent killed at random, a worker at a call, {} times", kills));
}

}  // namespace
}  // namespace difftape::test
