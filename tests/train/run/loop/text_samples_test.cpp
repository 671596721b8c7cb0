// What a model writes into the log while it trains.
#include "core/error.h"
#include "tests/support/sentencepiece.h"
#include "tests/train/run/loop/tiny.h"
#include "train/run/data/prepare/prepare.h"

namespace difftape::run {
namespace {

using test::contents;
using test::TinyProject;

TEST(TextSamples, go_to_the_log_and_change_no_bit) {
  TinyProject project;
  ASSERT_EQ(project.train("without"), system::Exit::ok);
  project.config.log.sample_interval = 5;
  project.config.log.sample_prompt = "the ";
  project.config.log.sample_tokens = 8;
  ASSERT_EQ(project.train("with"), system::Exit::ok);
  EXPECT_EQ(test::measured(project / "with"), test::measured(project / "without"));
  const std::string log = contents(project / "with/stdout.log");
  for (const int step : {5, 10, 12}) {
    EXPECT_THAT(log, testing::HasSubstr(fmt::format("\nsample after step {}: \"the ", step)));
  }
  EXPECT_THAT(log, testing::Not(testing::HasSubstr("sample after step 1:")));
}

/// Trains on the text as tokens of SentencePiece.
struct TokenProject : TinyProject {
  TokenProject() {
    std::vector<std::string> lines;
    for (int i = 0; i < 500; ++i) lines.push_back(fmt::format("the quick brown fox {} jumps", i));
    test::put(*this / "bpe.model", test::train_sentencepiece(lines, 300));
    PrepareRequest request;
    request.files = {{*this / "text.txt", "text"}};
    request.out = *this / "tokens.bin";
    request.tokenizer = sentencepiece_tokenizer(*this / "bpe.model");
    prepare_tokens(request);
    config.model.vocab_size = 300;
    config.data.type = DataKind::tokens;
    config.data.path = {(*this / "tokens.bin").string()};
    config.log.sample_interval = 12;
    config.log.sample_prompt = "the quick";
  }
};

TEST(TextSamples, are_text_of_the_tokenizer_that_the_tokens_have) {
  TokenProject project;
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  EXPECT_THAT(contents(project / "run/stdout.log"),
              testing::HasSubstr("\nsample after step 12: \"the quick"));
}

TEST(TextSamples, of_tokens_whose_text_nobody_knows_are_refused_before_anything_is_written) {
  TokenProject project;
  for (const char* beside : {"tokens.bin.json", "tokens.bin.model"})
    std::filesystem::remove(project / beside);
  EXPECT_THAT([&] { project.train("run"); },
              testing::ThrowsMessage<ConfigError>(testing::HasSubstr(
                  "log.sample_interval: samples are text, and the tokenizer of")));
  EXPECT_FALSE(std::filesystem::exists(project / "run"));
}

TEST(TextSamples, need_a_prompt_that_the_context_holds) {
  TokenProject project;
  project.config.log.sample_prompt = "a number of words with letters that are no part of the text";
  EXPECT_THAT(
      [&] { project.train("run"); },
      testing::ThrowsMessage<ConfigError>(testing::HasSubstr("log.sample_prompt: the prompt is")));
}

}  // namespace
}  // namespace difftape::run
