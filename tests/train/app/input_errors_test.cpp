// Inputs that are missing, empty, too short or damaged.
#include "tests/support/sanitizer.h"
#include "tests/train/run/loop/tiny.h"

namespace difftape::app {
namespace {

struct BadData : testing::Test {
  /// Trains on data.path, which must fail before the run directory exists.
  std::string error(const std::string& path, int exit) {
    const Outcome outcome =
        project.difftape({"train", "tiny.yaml", "--out", "run", "--set", "data.path=" + path});
    EXPECT_EQ(outcome.exit, exit) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_FALSE(fs::exists(project / "run"));
    return outcome.err;
  }

  TinyProject project;
};

TEST_F(BadData, a_missing_text_file_is_missing_input) {
  EXPECT_EQ(error("gone.txt", 66),
            "difftape: " + (project / "gone.txt").string() + ": no such file\nin data.path\n");
  EXPECT_EQ(error("*.cc", 66), "difftape: " + (project / "*.cc").string() +
                                   ": the pattern matches no file\nin data.path\n");
}

TEST_F(BadData, a_folder_without_files_is_missing_input) {
  fs::create_directory(project / "empty");
  EXPECT_EQ(error("empty", 66),
            "difftape: " + (project / "empty").string() +
                ": no files; names that begin with a dot are left out; give a file, a folder with "
                "files, or a pattern such as 'corpus/*.txt'\nin data.path\n");
}

TEST_F(BadData, the_shortest_sufficient_text_trains) {
  put(project / "short.txt", std::string(34, 'x'));
  test::output(
      project.difftape({"train", "tiny.yaml", "--out", "run", "--set", "data.path=short.txt"}));
}

TEST_F(BadData, other_than_regular_files_are_rejected) {
  EXPECT_EQ(
      error("/dev/zero", 65),
      "difftape: /dev/zero: is a special file, but must be a file or a directory\nin data.path\n");
}

TEST_F(BadData, resuming_without_a_run_is_missing_input) {
  EXPECT_EQ(test::error(66, project.difftape({"train", "tiny.yaml", "--out", "run", "--resume"})),
            "difftape: run: no such file or directory; nothing to continue: leave out --resume, or "
            "use --resume=auto, which then starts the run\n");
  EXPECT_FALSE(fs::exists(project / "run"));
  EXPECT_THAT(
      test::error(66, project.difftape({"train", "tiny.yaml", "--out", "text.txt", "--resume"})),
      HasSubstr("text.txt is not a run directory"));
}

TEST_F(BadData, resuming_from_a_damaged_or_lost_checkpoint_is_an_error_and_changes_nothing) {
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  const std::string status = contents(project / "run/status.json");
  const std::string metrics = contents(project / "run/metrics.jsonl");
  const fs::path checkpoint = project / "run/checkpoints/step-00000012.h5";
  std::string bytes = contents(checkpoint);
  const auto resume = [&](int exit) {
    const std::string outcome =
        test::error(exit, project.difftape({"train", "tiny.yaml", "--out", "run", "--resume"}));
    EXPECT_EQ(contents(project / "run/status.json"), status);
    EXPECT_EQ(contents(project / "run/metrics.jsonl"), metrics);
    return outcome;
  };

  const std::string name = "run/checkpoints/step-00000012.h5";
  put(checkpoint, bytes.substr(0, bytes.size() / 2));
  EXPECT_THAT(resume(65), HasSubstr("difftape: checkpoint " + name + " is truncated: "));
  bytes[bytes.size() / 2] ^= 1;
  put(checkpoint, bytes);
  EXPECT_THAT(resume(65), HasSubstr("difftape: checkpoint " + name + " is damaged: "));
  put(checkpoint, "hello");
  EXPECT_THAT(resume(65), HasSubstr(name + ": is not a difftape checkpoint"));
  fs::remove(checkpoint);
  const std::string other =
      test::error(78, project.difftape({"train", "tiny.yaml", "--out", "run", "--resume", "--set",
                                        "optim.lr=0.5"}));
  EXPECT_EQ(
      other,
      "run: has a different configuration: optim.lr is 0.01, not 0.5; to keep the configuration of "
      "the run: difftape train run --resume; to use another configuration, start a new "
      "run with --out DIR\n");
}

TEST_F(BadData, a_report_needs_run_directories) {
  EXPECT_EQ(test::error(66, project.difftape({"report", "gone"})),
            "difftape: gone: no such file or directory; give a run directory, the --out of "
            "difftape train\n");
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  put(project / "run/status.json", "{\"state\": \"fini");
  EXPECT_THAT(test::error(65, project.difftape({"report", "run"})),
              HasSubstr("difftape: run/status.json is damaged: "));
  EXPECT_FALSE(fs::exists(project / "report"));
}

TEST_F(BadData, a_model_that_does_not_fit_into_memory_is_a_clear_error) {
  if (test::kKeepsFreedMemory) GTEST_SKIP() << "the sanitizer takes more addresses than any limit";
  constexpr std::uint64_t kGigabyte = 1 << 30;  // the embedding alone is four
  const std::string huge = "model: {vocab_size: 1048576, d_model: 1024}\n";
  put(project / "huge.yaml", "base: tiny.yaml\n" + huge);
  put(project / "s.yaml", "base: tiny.yaml\nsweep.arms:\n  huge:\n    " + huge + "  tiny: {}\n");
  const std::string what = "exceeds the address space of a process";
  for (const char* command : {"train", "sweep"}) {  // before anything is made
    const std::string file = command == std::string("train") ? "huge.yaml" : "s.yaml";
    EXPECT_THAT(
        test::error(78, project.difftape({command, file, "--out", "out"}, {.memory = kGigabyte})),
        HasSubstr(what));
    EXPECT_FALSE(fs::exists(project / "out/tiny"));
  }
  EXPECT_EQ(test::error(65, project.difftape({"eval", "huge.yaml"}, {.memory = kGigabyte})),
            "difftape: out of memory; `difftape plan CONFIG` estimates the memory of a run\n");
}

struct BrokenConfig : testing::Test {
  std::string error(const std::string& yaml, const Words& more = {}) {
    put(project / "a.yaml", yaml);
    const Outcome outcome = project.difftape(joined({"train", "a.yaml", "--out", "run"}, more));
    EXPECT_EQ(outcome.exit, 78) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_FALSE(fs::exists(project / "run"));
    EXPECT_FALSE(fs::exists(project / "runs"));
    return outcome.err;
  }

  TinyProject project;
};

TEST_F(BrokenConfig, every_kind_of_error_is_reported_in_one_pass_with_its_location) {
  EXPECT_EQ(error("base: tiny.yaml\n"
                  "model: {d_modl: 32, num_heads: 3}\n"
                  "optim:\n"
                  "  lr: fast\n"
                  "  betas: [0.9, 1.5]\n"
                  "  lr: 0.1\n"
                  "train: {steps: 0, eval_interval: 2.5}\n",
                  {"--set", "data.bach_size=4"}),
            "a.yaml:2:9: error: unknown key 'model.d_modl'; did you mean 'model.d_model'?\n"
            "a.yaml:6:3: error: duplicate key 'optim.lr'; first given in line 4\n"
            "--set data.bach_size=4: error: unknown key 'data.bach_size'; did you mean "
            "'data.batch_size'?\n"
            "a.yaml:4:7: error: optim.lr: expected a number, got 'fast'\n"
            "a.yaml:5:16: error: optim.betas: 1.5 is out of range; need in [0, 1)\n"
            "a.yaml:7:16: error: train.steps: 0 is out of range; need in [1, 1000000000000]\n"
            "a.yaml:7:34: error: train.eval_interval: expected an integer, got '2.5'\n");
}

TEST_F(BrokenConfig, a_file_that_cannot_be_searched_is_not_reported_as_missing) {
  const std::string longer_than_a_name(300, 'x');
  EXPECT_EQ(
      error("base: " + longer_than_a_name + "\n"),
      "a.yaml:1:7: error: base: " + longer_than_a_name + ": cannot be read: File name too long\n");
  fs::create_symlink("loop", project / "loop");
  EXPECT_EQ(error("base: loop/a.yaml\n"),
            "a.yaml:1:7: error: base: loop/a.yaml: cannot be read: Too many levels of symbolic "
            "links\n");
}

TEST_F(BrokenConfig, a_sweep_given_to_train_and_the_reverse_name_the_right_command) {
  EXPECT_EQ(
      error("sweep: {arms: {a: , b: }}\n"),
      "a.yaml:1:1: error: sweep: this file is a sweep; run it with 'difftape sweep a.yaml'\n");
  EXPECT_THAT(test::error(78, project.difftape({"sweep", "tiny.yaml", "--out", "run"})),
              HasSubstr("this file has no 'sweep.arms'; list the arms, or train one "
                        "model with 'difftape train'"));
}

TEST_F(BrokenConfig, a_missing_config_is_missing_input_with_the_nearest_name) {
  for (const std::string command : {"train", "plan", "sweep"}) {
    EXPECT_EQ(test::error(66, project.difftape({command, "tinny.yaml"})),
              "difftape: tinny.yaml: no such file; did you mean 'tiny.yaml'?\n");
  }
}

}  // namespace
}  // namespace difftape::app
