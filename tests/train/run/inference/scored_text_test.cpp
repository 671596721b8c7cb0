#include "train/run/inference/scored_text.h"

#include <algorithm>
#include <array>

#include "autograd/ops.h"
#include "tests/support/sentencepiece.h"
#include "tests/support/test.h"
#include "train/run/data/prepare/prepare.h"
#include "train/run/data/sources.h"

namespace difftape::run {
namespace {

/// Text whose tokens have many bytes in one part and few in the other: known words, then numbers.
std::string uneven_text() {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "internationalization of representation\n";
  for (int i = 0; i < 400; ++i) text += fmt::format("{} {}\n", i * i % 9973, i);
  return text;
}

/// A model that keeps text; with `prefix` it puts a space before every document, as Llama's does.
std::string kept_model(bool prefix) {
  std::vector<std::string> lines(20, "internationalization of representation");
  lines.push_back("0 1 2 3 4 5 6 7 8 9");
  return test::train_sentencepiece(std::move(lines),
                                   {{"model_type", "bpe"},
                                    {"vocab_size", "330"},
                                    {"hard_vocab_limit", "false"},
                                    {"normalization_rule_name", "identity"},
                                    {"remove_extra_whitespaces", "false"},
                                    {"add_dummy_prefix", prefix ? "true" : "false"},
                                    {"allow_whitespace_only_pieces", "true"},
                                    {"byte_fallback", "true"},
                                    {"user_defined_symbols", "\n"}});
}

struct ScoredTextOfTokens : testing::Test {
  ScratchDir dir;
  Index eos = -1;

  void prepare(const std::string& text, const std::string& model, const std::string& out) {
    put(dir / (out + ".txt"), text);
    put(dir / "my.model", model);
    const std::vector<std::string> paths{dir / (out + ".txt")};
    const Prepared made = prepare_tokens({.files = find_source_files(paths).files,
                                          .out = dir / out,
                                          .tokenizer = sentencepiece_tokenizer(dir / "my.model")});
    eos = made.eos_token_id;
  }
  DataConfig config(const std::string& name) const {
    return {.type = DataKind::tokens,
            .path = {dir / name},
            .seq_len = 16,
            .batch_size = 4,
            .eos_token_id = eos,
            .val_fraction = 0.3};
  }
  static ModelConfig model() {
    ModelConfig model;
    model.vocab_size = 600;
    return model;
  }
  std::unique_ptr<Dataset> split(const std::string& name) const {
    return make_dataset(config(name), model(), 1);
  }
  std::unique_ptr<ValidationData> whole(const std::string& name) const {
    return make_whole_data(config(name), model(), {});
  }
  /// Returns the text that SentencePiece decodes for the scored targets of a batch: what each adds
  /// to the text of its row.
  Index decoded_bytes(const ValidationData& data, Index batches) const {
    const Tokenizer tokenizer = sentencepiece_tokenizer(dir / "my.model");
    Index bytes = 0;
    for (Index i = 0; i < batches; ++i) {
      const Batch batch = data.val_batch(i);
      for (Index row = 0; row < batch.batch; ++row) {
        const auto* begin = batch.tokens.data() + row * (batch.seq + 1);
        for (Index t = 0; t < batch.seq; ++t) {
          if (batch.rows({row, row + 1}).targets()[t] == kIgnoreIndex) continue;
          const std::array<std::int32_t, 2> both{begin[t], begin[t + 1]};
          bytes += std::ssize(tokenizer.decode(both)) -
                   std::ssize(tokenizer.decode(std::span(both).first(1)));
        }
      }
    }
    return bytes;
  }
};

TEST_F(ScoredTextOfTokens, of_a_split_is_that_of_its_windows) {
  for (const bool prefix : {false, true}) {
    prepare(uneven_text(), kept_model(prefix), "t.bin");
    const auto data = split("t.bin");
    const Index batches = data->val_batches();
    ASSERT_GT(batches, 4);
    const Index right = decoded_bytes(*data, batches);
    EXPECT_EQ(scored_text(*data, batches).bytes, right) << prefix;
    EXPECT_EQ(scored_text(*data, 2).bytes, decoded_bytes(*data, 2)) << prefix;
    // The parts differ, so the ratio of the whole text would be wrong.
    const double tokens = static_cast<double>(data->source()->size()), window = 16.0 * 4 * 2;
    const double usual = static_cast<double>(uneven_text().size()) / tokens;
    EXPECT_GT(std::abs(static_cast<double>(decoded_bytes(*data, 2)) / window - usual), 0.02);
  }
}

TEST_F(ScoredTextOfTokens, of_documents_leaves_out_the_space_that_the_model_adds) {
  std::string lines, text;
  for (int i = 0; i < 300; ++i) {
    const std::string document = fmt::format("internationalization {}", i);
    lines += fmt::format("{{\"text\": \"{}\"}}\n", document);
    if (i > 0) text += document;
  }
  prepare(lines, kept_model(true), "t.bin");
  ASSERT_GE(eos, 0);
  const auto data = whole("t.bin");
  // All documents but the first token of the first: "internationalization 0".
  const Tokenizer tokenizer = sentencepiece_tokenizer(dir / "my.model");
  const auto first = tokenizer.encode("internationalization 0");
  const Index rest = std::ssize(std::string("internationalization 0")) -
                     std::ssize(tokenizer.decode(std::span(first).first(1)));
  EXPECT_EQ(scored_text(*data, data->val_batches()).bytes, std::ssize(text) + rest);
}

TEST_F(ScoredTextOfTokens, of_a_tokenizer_that_loses_text_is_known_for_all_tokens_only) {
  std::string text = uneven_text();
  for (int i = 0; i < 500; ++i) text += "\u4e00\u4e01\u4e02\u4e03 ";  // one unknown token each
  prepare(text, test::train_lossy_sentencepiece({"internationalization of 0 1 2 3"}, 60), "t.bin");
  const auto data = whole("t.bin");
  const Index batches = data->val_batches();
  std::vector<std::int32_t> first(1);
  data->source()->copy(0, first);
  const Index before = std::ssize(sentencepiece_tokenizer(dir / "my.model").decode(first));
  EXPECT_EQ(scored_text(*data, batches).bytes, std::ssize(text) - before);
  const auto unknown = HasSubstr("my.model does not keep the text, so only the size of the whole");
  EXPECT_THAT(scored_text(*data, batches - 1).reason, unknown);
  EXPECT_EQ(scored_text(*data, batches - 1).bytes, 0);
  const auto held_out = split("t.bin");
  EXPECT_EQ(scored_text(*held_out, held_out->val_batches()).bytes, 0);
  EXPECT_THAT(scored_text(*held_out, held_out->val_batches()).reason, unknown);
}

TEST_F(ScoredTextOfTokens, without_provenance_is_unknown) {
  prepare(uneven_text(), kept_model(false), "t.bin");
  for (const char* gone : {"t.bin.json", "t.bin.model"}) {
    fs::remove(dir / gone);
    const auto data = whole("t.bin");
    const ScoredText found = scored_text(*data, data->val_batches());
    EXPECT_EQ(found.bytes, 0) << gone;
    EXPECT_THAT(found.reason, HasSubstr("the tokens lack the size of their text")) << gone;
  }
}

}  // namespace
}  // namespace difftape::run
