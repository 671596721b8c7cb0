// Inputs that are missing, empty, too short or damaged.
#include "tests/support/sanitizer.h"
#include "tests/train/run/loop/tiny.h"

namespace difftape::app {
namespace {

namespace fs = std::filesystem;
using test::contents;
using test::Outcome;
using test::put;
using testing::HasSubstr;

class BadData : public testing::Test {
 protected:
  /// Trains on data.path, which must fail before there is a run directory.
  std::string error(const std::string& path, int exit) {
    const Outcome outcome =
        project.difftape({"train", "tiny.yaml", "--out", "run", "--set", "data.path=" + path});
    EXPECT_EQ(outcome.exit, exit) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_FALSE(fs::exists(project / "run"));
    return outcome.err;
  }

  test::TinyProject project;
};

TEST_F(BadData, a_text_that_is_not_there_is_missing_input) {
  EXPECT_EQ(error("gone.txt", 66),
            "difftape: " + (project / "gone.txt").string() + ": no such file\nin data.path\n");
  EXPECT_EQ(error("'*.cc'", 66), "difftape: " + (project / "*.cc").string() +
                                     ": the pattern matches no file\nin data.path\n");
}

TEST_F(BadData, an_empty_or_too_short_text_says_how_long_it_must_be) {
  put(project / "empty.txt", "");
  EXPECT_EQ(error("empty.txt", 65),
            "difftape: the text of " + (project / "empty.txt").string() +
                " is 0 bytes long; data.seq_len 16 needs at least 34, one sequence of seq_len + 1 "
                "to train and one to validate\nin data.path\n");
  put(project / "short.txt", std::string(33, 'x'));
  EXPECT_THAT(error("short.txt", 65), HasSubstr("short.txt is 33 bytes long; data.seq_len 16 needs "
                                                "at least 34"));
}

TEST_F(BadData, the_shortest_text_that_is_enough_trains) {
  put(project / "short.txt", std::string(34, 'x'));
  const Outcome outcome =
      project.difftape({"train", "tiny.yaml", "--out", "run", "--set", "data.path=short.txt"});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
}

TEST_F(BadData, what_is_no_file_is_refused) {
  EXPECT_EQ(error("/dev/zero", 65),
            "difftape: /dev/zero: neither a file nor a directory\nin data.path\n");
}

TEST_F(BadData, resuming_without_a_run_is_missing_input) {
  const Outcome nothing = project.difftape({"train", "tiny.yaml", "--out", "run", "--resume"});
  EXPECT_EQ(nothing.exit, 66);
  EXPECT_EQ(nothing.err, "difftape: there is no directory run; give that of a run\n");
  EXPECT_FALSE(fs::exists(project / "run"));
  const Outcome file = project.difftape({"train", "tiny.yaml", "--out", "text.txt", "--resume"});
  EXPECT_EQ(file.exit, 66);
  EXPECT_THAT(file.err, HasSubstr("text.txt is not a run directory"));
}

TEST_F(BadData, resuming_from_a_damaged_or_lost_checkpoint_says_so_and_changes_nothing) {
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  const std::string status = contents(project / "run/status.json");
  const std::string metrics = contents(project / "run/metrics.jsonl");
  const fs::path checkpoint = project / "run/checkpoints/step-00000012.h5";
  std::string bytes = contents(checkpoint);
  const auto resume = [&](int exit) {
    const Outcome outcome = project.difftape({"train", "tiny.yaml", "--out", "run", "--resume"});
    EXPECT_EQ(outcome.exit, exit);
    EXPECT_EQ(contents(project / "run/status.json"), status);
    EXPECT_EQ(contents(project / "run/metrics.jsonl"), metrics);
    return outcome.err;
  };

  const std::string name = "run/checkpoints/step-00000012.h5";
  put(checkpoint, bytes.substr(0, bytes.size() / 2));
  EXPECT_THAT(resume(65), HasSubstr("difftape: checkpoint " + name + " is cut off: "));
  bytes[bytes.size() / 2] ^= 1;
  put(checkpoint, bytes);
  EXPECT_THAT(resume(65), HasSubstr("difftape: checkpoint " + name + " is damaged: "));
  put(checkpoint, "hello");
  EXPECT_THAT(resume(65), HasSubstr(name + " is not a difftape checkpoint"));
  fs::remove(checkpoint);
  EXPECT_EQ(resume(66),
            "difftape: run/checkpoints/latest names 'step-00000012.h5', which is not "
            "beside it\n");
  fs::remove(project / "run/checkpoints/latest");
  const Outcome other =
      project.difftape({"train", "tiny.yaml", "--out", "run", "--resume", "--set", "optim.lr=0.5"});
  EXPECT_EQ(other.exit, 78);
  EXPECT_EQ(
      other.err,
      "run: was made with another configuration: optim.lr is 0.01, not 0.5; resume with the run's "
      "own config.yaml, or start a new run with another --out\n");
}

TEST_F(BadData, a_report_needs_run_directories) {
  const Outcome outcome = project.difftape({"report", "gone"});
  EXPECT_EQ(outcome.exit, 66);
  EXPECT_EQ(outcome.err, "difftape: there is no directory gone; give that of a run\n");
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  put(project / "run/status.json", "{\"state\": \"fini");
  const Outcome damaged = project.difftape({"report", "run"});
  EXPECT_EQ(damaged.exit, 65);
  EXPECT_THAT(damaged.err, HasSubstr("difftape: run/status.json is damaged: "));
  EXPECT_FALSE(fs::exists(project / "report.html"));
}

TEST_F(BadData, a_model_that_does_not_fit_into_memory_is_told_from_a_crash) {
  if (test::kKeepsFreedMemory) GTEST_SKIP() << "the sanitizer takes more addresses than any limit";
  constexpr std::uint64_t kGigabyte = 1 << 30;  // the embedding alone is four
  const std::string huge = "model: {vocab_size: 1048576, d_model: 1024}\n";
  put(project / "huge.yaml", "base: tiny.yaml\n" + huge);
  put(project / "s.yaml", "base: tiny.yaml\nsweep.arms:\n  huge:\n    " + huge + "  tiny: {}\n");
  const std::string what = "needs more memory than a process can address";
  for (const char* command : {"train", "sweep"}) {  // before anything is made
    const std::string file = command == std::string("train") ? "huge.yaml" : "s.yaml";
    const Outcome outcome =
        project.difftape({command, file, "--out", "out"}, {.memory = kGigabyte});
    EXPECT_EQ(outcome.exit, 78);
    EXPECT_THAT(outcome.err, HasSubstr(what));
    EXPECT_FALSE(fs::exists(project / "out/tiny"));
  }
  const Outcome eval = project.difftape({"eval", "huge.yaml"}, {.memory = kGigabyte});
  EXPECT_EQ(eval.exit, 65);
  EXPECT_EQ(eval.err, "difftape: out of memory; `difftape plan CONFIG` says what a run needs\n");
}

}  // namespace
}  // namespace difftape::app
