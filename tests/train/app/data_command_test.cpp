// `difftape data` as a user runs it, up to the run that trains on what it made.
#include <gmock/gmock.h>

#include "tests/train/run/loop/tiny.h"

namespace difftape::app {
namespace {

namespace fs = std::filesystem;
using test::Outcome;
using test::put;
using testing::AllOf;
using testing::HasSubstr;

struct DataCommand : testing::Test {
  test::TinyProject project;

  Outcome data(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "data");
    return project.difftape(arguments);
  }
};

TEST_F(DataCommand, makes_a_tokenizer_and_tokens_that_train) {
  std::string lines;
  for (int i = 0; i < 3000; ++i) lines += fmt::format("value {} of {}\n", i * i % 997, i);
  put(project / "corpus.txt", lines);
  const Outcome tokenizer =
      data({"tokenizer", "corpus.txt", "--vocab-size", "600", "--out", "my.model"});
  ASSERT_EQ(tokenizer.exit, 0) << tokenizer.err;
  EXPECT_EQ(tokenizer.err, "");
  const Outcome tokens =
      data({"prepare", "corpus.txt", "--tokenizer", "my.model", "--out", "t.bin"});
  ASSERT_EQ(tokens.exit, 0) << tokens.err;
  EXPECT_THAT(tokens.out, HasSubstr("  data: {kind: tokens, path: t.bin, eos_token_id: 2}\n"
                                    "  model: {vocab_size: 600}\n"));
  const Outcome run = project.difftape({"train", "tiny.yaml", "--out", "run", "--set",
                                        "data.kind=tokens", "--set", "data.path=t.bin", "--set",
                                        "data.eos_token_id=2", "--set", "model.vocab_size=600"});
  EXPECT_EQ(run.exit, 0) << run.err;
}

TEST_F(DataCommand, replaces_only_what_it_could_have_written) {
  put(project / "corpus.txt", "text");
  fs::create_directory(project / "t.bin");
  EXPECT_EQ(data({"prepare", "corpus.txt", "--out", "t.bin"}).exit, 74);
  const Outcome itself = data({"prepare", "corpus.txt", "--out", "corpus.txt"});
  EXPECT_EQ(itself.exit, 74);
  EXPECT_EQ(test::contents(project / "corpus.txt"), "text");
  EXPECT_EQ(data({"prepare", "none.txt", "--out", "u.bin"}).exit, 66);
  EXPECT_EQ(data({"prepare", "corpus.txt", "--out", "u.bin", "--eos-token-id", "-2"}).exit, 64);
  EXPECT_EQ(data({"tokenizer", "corpus.txt", "--out", "u.model", "--vocab-size", "9"}).exit, 64);
  EXPECT_FALSE(fs::exists(project / "u.bin"));
}

TEST_F(DataCommand, on_a_full_disk_leaves_nothing_behind) {
  put(project / "corpus.txt", std::string(300'000, 'a'));
  const Outcome outcome = test::run({"data", "prepare", "corpus.txt", "--out", "t.bin"},
                                    {.directory = project.path(), .largest_file = 100'000});
  EXPECT_EQ(outcome.exit, 74);
  EXPECT_THAT(outcome.err, HasSubstr("cannot write t.bin: File too large"));
  EXPECT_FALSE(fs::exists(project / "t.bin"));
  EXPECT_FALSE(fs::exists(project / "t.bin.tmp"));
  EXPECT_FALSE(fs::exists(project / "t.bin.json"));
}

}  // namespace
}  // namespace difftape::app
