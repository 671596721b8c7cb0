// What a user may get wrong in a configuration: one pass, every error with its place, exit 78,
// and nothing made.
#include "tests/train/run/loop/tiny.h"

namespace difftape::app {
namespace {

using test::Outcome;
using test::put;
using testing::HasSubstr;
using Words = std::vector<std::string>;

class BrokenConfig : public testing::Test {
 protected:
  std::string error(const std::string& yaml, const Words& more = {}) {
    put(project / "a.yaml", yaml);
    Words arguments{"train", "a.yaml", "--out", "run"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = project.difftape(arguments);
    EXPECT_EQ(outcome.exit, 78) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_FALSE(std::filesystem::exists(project / "run"));
    EXPECT_FALSE(std::filesystem::exists(project / "runs"));
    return outcome.err;
  }

  test::TinyProject project;
};

TEST_F(BrokenConfig, every_kind_of_error_is_reported_in_one_pass_with_its_place) {
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
            "a.yaml:7:16: error: train.steps: 0 is out of range; need >= 1\n"
            "a.yaml:7:34: error: train.eval_interval: expected an integer, got '2.5'\n");
}

TEST_F(BrokenConfig, a_file_that_cannot_be_looked_for_is_not_said_to_be_missing) {
  const std::string longer_than_a_name(300, 'x');
  EXPECT_EQ(
      error("base: " + longer_than_a_name + "\n"),
      "a.yaml:1:7: error: base: " + longer_than_a_name + ": cannot be read: File name too long\n");
  std::filesystem::create_symlink("loop", project / "loop");
  EXPECT_EQ(error("base: loop/a.yaml\n"),
            "a.yaml:1:7: error: base: loop/a.yaml: cannot be read: Too many levels of symbolic "
            "links\n");
}

TEST_F(BrokenConfig, nonsense_for_set_is_an_error_that_quotes_it) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"foo", "expected key=value, for example --set optim.lr=0.001"},
      {"optim.lr=a=b", "optim.lr: expected a number, got 'a=b'"},
      {"optim.lr=[", "invalid YAML: end of sequence flow not found"},
      {"model.attention.kind=diff_v3",
       "model.attention.kind: 'diff_v3' is not one of diff_v1, diff_v2, gated, sink, softmax, "
       "softmax1, softmax_2h; did you mean 'diff_v1'?"}};
  for (const auto& [text, message] : cases) {
    EXPECT_EQ(error("base: tiny.yaml\n", {"--set", text}),
              "--set " + text + ": error: " + message + "\n");
  }
}

TEST_F(BrokenConfig, a_vocabulary_smaller_than_the_bytes_of_text_is_an_error) {
  EXPECT_EQ(error("base: tiny.yaml\nmodel.vocab_size: 100\n"),
            "model.vocab_size is 100; data.type 'text' needs at least 256\n");
}

TEST_F(BrokenConfig, a_sweep_given_to_train_and_the_reverse_say_which_command_to_use) {
  EXPECT_EQ(error("sweep: {arms: {a: , b: }}\n"),
            "a.yaml:1:1: error: sweep: this is a sweep; run it with 'difftape sweep a.yaml'\n");
  const Outcome outcome = project.difftape({"sweep", "tiny.yaml", "--out", "run"});
  EXPECT_EQ(outcome.exit, 78);
  EXPECT_THAT(outcome.err, HasSubstr("this file has no 'sweep.arms'; name the arms, or train one "
                                     "model with 'difftape train'"));
}

TEST_F(BrokenConfig, a_config_that_is_not_there_is_missing_input_with_the_nearest_name) {
  for (const std::string command : {"train", "plan", "sweep"}) {
    const Outcome outcome = project.difftape({command, "tinny.yaml"});
    EXPECT_EQ(outcome.exit, 66);
    EXPECT_EQ(outcome.err, "difftape: tinny.yaml: no such file; did you mean 'tiny.yaml'?\n");
  }
}

}  // namespace
}  // namespace difftape::app
