#include "tests/support/test.h"
#include "train/run/data/sources.h"

#include "train/system/stored_bytes.h"

namespace difftape::run {
namespace {

/// Returns numbers in base 200, two bytes each, low byte first; any 3 bytes determine their
/// position.
std::string counting_text(int numbers) {
  std::string text;
  for (int i = 0; i < numbers; ++i) {
    text += static_cast<char>(1 + i % 200);
    text += static_cast<char>(201 + i / 200);
  }
  return text;
}

struct TextData : testing::Test {
  ScratchDir dir;

  DataConfig config(Index seq_len = 16, Index batch_size = 4) const {
    return {.path = {(dir / "text").string()}, .seq_len = seq_len, .batch_size = batch_size};
  }
  static std::unique_ptr<Dataset> make(const DataConfig& config, std::uint64_t seed = 1,
                                       Index micro_batches = 1) {
    return make_dataset(config, ModelConfig{}, seed, micro_batches);
  }
};

std::vector<std::string> rows(const Batch& batch) {
  std::vector<std::string> all;
  for (Index b = 0; b < batch.batch; ++b) {
    const auto first = batch.tokens.begin() + b * (batch.seq + 1);
    all.emplace_back(first, first + batch.seq + 1);
  }
  return all;
}

TEST_F(TextData, batches_have_inputs_and_targets_one_token_later) {
  put(dir / "text", counting_text(2000));
  const Batch batch = make(config())->train_batch(3, 0);
  EXPECT_EQ(batch.batch, 4);
  EXPECT_EQ(batch.seq, 16);
  ASSERT_EQ(batch.tokens.size(), 4u * 17);
  const auto inputs = batch.inputs(), targets = batch.targets();
  ASSERT_EQ(inputs.size(), 4u * 16);
  ASSERT_EQ(targets.size(), 4u * 16);
  for (size_t b = 0; b < 4; ++b) {
    for (size_t t = 0; t < 16; ++t) {
      EXPECT_EQ(inputs[b * 16 + t], batch.tokens[b * 17 + t]);
      EXPECT_EQ(targets[b * 16 + t], batch.tokens[b * 17 + t + 1]);
    }
  }
}

TEST_F(TextData, bytes_are_tokens_from_0_to_255) {
  put(dir / "text", std::string(34, '\xff'));
  const auto data = make(config());
  EXPECT_EQ(data->vocab_size(), 256);
  for (std::int32_t token : data->train_batch(0, 0).tokens) EXPECT_EQ(token, 255);
}

TEST_F(TextData, a_batch_depends_only_on_seed_step_and_micro_batch) {
  put(dir / "text", counting_text(2000));
  const auto tokens = [&](std::uint64_t seed, Index step, Index micro) {
    return make(config(), seed, 2)->train_batch(step, micro).tokens;
  };
  const auto data = make(config(), 1, 2);
  data->train_batch(9, 1);
  EXPECT_EQ(data->train_batch(5, 0).tokens, tokens(1, 5, 0));
  EXPECT_NE(tokens(1, 5, 0), tokens(2, 5, 0));
  EXPECT_NE(tokens(1, 5, 0), tokens(1, 6, 0));
  EXPECT_NE(tokens(1, 5, 0), tokens(1, 5, 1));
}

TEST_F(TextData, a_step_reads_the_same_sequences_for_every_split) {
  put(dir / "text", counting_text(2000));
  const auto sequences = [this](Index batch_size, Index micro_batches, Index steps) {
    const auto data = make(config(16, batch_size), 1, micro_batches);
    std::vector<std::string> all;
    for (Index step = 0; step < steps; ++step) {
      for (Index micro = 0; micro < micro_batches; ++micro) {
        const std::vector<std::string> more = rows(data->train_batch(step, micro));
        all.insert(all.end(), more.begin(), more.end());
      }
    }
    return all;
  };
  const std::vector<std::string> whole = sequences(12, 1, 40);
  EXPECT_EQ(sequences(4, 3, 40), whole);
  EXPECT_EQ(sequences(1, 12, 40), whole);
  EXPECT_EQ(sequences(3, 2, 80), whole) << "steps of half the size continue after one another";
}

TEST_F(TextData, training_and_validation_share_no_byte_and_leave_none_out) {
  const std::string text = counting_text(500);
  put(dir / "text", text);
  const auto data = make(config(3, 4));
  std::set<size_t> trained, validated;
  const auto mark = [&text](const Batch& batch, std::set<size_t>& seen) {
    for (const std::string& row : rows(batch)) {
      const size_t at = text.find(row);
      ASSERT_NE(at, std::string::npos) << "a window crosses a border";
      for (size_t i = 0; i < row.size(); ++i) seen.insert(at + i);
    }
  };
  // Three epochs, so that a window begins at every position: at most 950 windows, four per step.
  for (Index step = 0; step < 238; ++step) mark(data->train_batch(step, 0), trained);
  for (Index i = 0; i < data->val_batches(); ++i) mark(data->val_batch(i), validated);
  EXPECT_EQ(trained.size(), 950u);
  EXPECT_EQ(validated.size(), 48u) << "twelve windows of 4 fit into the 50 bytes of validation";
  for (size_t at : validated) EXPECT_FALSE(trained.contains(at));
}

TEST_F(TextData, validation_is_the_same_for_every_seed_and_has_every_window_once) {
  put(dir / "text", counting_text(5000));
  const auto a = make(config(), 1), b = make(config(), 2);
  ASSERT_EQ(a->val_batches(), 8);  // 500 bytes, 29 windows, batches of 4
  std::set<std::string> seen;
  for (Index i = 0; i < a->val_batches(); ++i) {
    EXPECT_EQ(a->val_batch(i).tokens, b->val_batch(i).tokens);
    EXPECT_EQ(a->val_batch(i).batch, i < 7 ? 4 : 1);
    for (const std::string& row : rows(a->val_batch(i))) EXPECT_TRUE(seen.insert(row).second);
  }
}

TEST_F(TextData, the_shortest_text_has_one_smaller_validation_batch) {
  put(dir / "text", std::string(34, 'a'));
  const auto data = make(config());
  EXPECT_EQ(data->val_batches(), 1);
  EXPECT_EQ(data->val_batch(0).batch, 1);
  EXPECT_EQ(data->train_batch(0, 0).batch, 4);
}

TEST_F(TextData, info_has_size_and_digest_of_the_bytes) {
  put(dir / "text", counting_text(500));
  const auto info = make(config())->info();
  EXPECT_EQ(info["type"], "text");
  EXPECT_EQ(info["files"], 1);
  EXPECT_EQ(info["bytes"], 1000);
  EXPECT_EQ(info["val_bytes"], 50);
  EXPECT_EQ(info["epoch_sequences"], 58) << "windows of 16 in the two training spans, 950 bytes";
  EXPECT_EQ(info["xxh3_128"].get<std::string>().size(), 32u);
  put(dir / "text", counting_text(501));
  EXPECT_NE(make(config())->info()["xxh3_128"], info["xxh3_128"]);
}

TEST_F(TextData, a_text_that_is_too_short_is_reported_with_both_lengths) {
  put(dir / "text", std::string(33, 'a'));
  const std::string path = dir / "text";
  EXPECT_THAT([&] { make(config()); },
              ThrowsMessage<DataError>(
                  "the text of " + path +
                  " has 33 bytes, but data.seq_len 16 needs at least 34: one training and one "
                  "validation sequence of seq_len + 1; give more data\nin data.path"));
  put(dir / "text", "");
  EXPECT_THAT([&] { make(config()); }, ThrowsMessage<DataError>(HasSubstr("has 0 bytes")));
}

TEST_F(TextData, binary_files_are_rejected_with_the_key_to_set) {
  put(dir / "text", std::string(500, 'a') + '\0' + std::string(500, 'a'));
  EXPECT_THAT(
      [&] { make(config()); },
      ThrowsMessage<DataError>((dir / "text").string() +
                               ": byte 500 is 0, but the file must be text; set data.type to "
                               "tokens for token files, or leave this file out\nin data.path"));
}

TEST_F(TextData, in_utf16_is_rejected_with_its_conversion) {
  for (const char* mark : {"\xFF\xFE", "\xFE\xFF"}) {
    put(dir / "text", mark + std::string("a\0b\0", 4));
    EXPECT_THAT([&] { make(config()); },
                ThrowsMessage<DataError>((dir / "text").string() +
                                         ": is UTF-16, but must be UTF-8; convert it with iconv -f "
                                         "UTF-16 -t UTF-8\nin data.path"));
  }
}

TEST_F(TextData, larger_than_the_memory_limit_is_read_from_disk) {
  const std::string begin = counting_text(10000);
  std::string large;
  while (large.size() <= system::StoredBytes::kInMemory) large += begin;
  fs::create_directory(dir / "text");
  put(dir / "text/a", "\n");
  put(dir / "text/b", large);
  const auto data = make(config());
  EXPECT_EQ(data->info()["bytes"], 1 + large.size());
  for (Index step = 0; step < 50; ++step)
    for (const std::string& row : rows(data->train_batch(step, 0)))
      EXPECT_NE((begin + begin).find(row), std::string::npos);
  const fs::file_time_type changed = fs::last_write_time(dir / "text/b") + std::chrono::hours(1);
  fs::last_write_time(dir / "text/b", changed);  // as `touch` does
  for (Index step = 0; step < 50; ++step) data->train_batch(step, 0);
  fs::resize_file(dir / "text/b", large.size() / 2);
  EXPECT_THAT(
      [&] {
        for (Index step = 0; step < 50; ++step) data->train_batch(step, 0);
      },
      ThrowsMessage<DataError>((dir / "text/b").string() +
                               ": the file changed while it was read; restore it and start "
                               "again, or, for a run, continue with --resume"));
}

TEST_F(TextData, that_changes_in_place_stops_the_run) {
  std::string large;
  while (large.size() <= system::StoredBytes::kInMemory) large += counting_text(10000);
  put(dir / "text", large);
  const auto data = make(config());
  data->train_batch(0, 0);
  large[large.size() / 2] ^= 1;
  std::fstream(dir / "text", std::ios::in | std::ios::out | std::ios::binary) << large;
  fs::last_write_time(dir / "text", fs::last_write_time(dir / "text") + std::chrono::hours(1));
  EXPECT_THAT(
      [&] { data->train_batch(1, 0); },
      ThrowsMessage<DataError>(HasSubstr("the file changed while it was read; restore it")));
}

TEST_F(TextData, takes_json_from_a_folder_as_text_and_leaves_out_json_lines) {
  fs::create_directory(dir / "text");
  const std::string code(500, 'c'), package = "{\"name\": \"x\"}", lines = "{}\n{}\n";
  put(dir / "text/a.cpp", code);
  put(dir / "text/list.json", "[{}]");
  put(dir / "text/package.json", package);
  put(dir / "text/z.jsonl", lines);
  const auto data = make(config());
  // By hand: 500 + 4 + 13 bytes of text, and 6 of JSON lines.
  EXPECT_EQ(data->info()["bytes"], 517);
  EXPECT_EQ(data->info()["files"], 3);
  EXPECT_THAT(data->notes(), ElementsAre("data.path: 3 of 4 files, 517 of 523 bytes; left out: 1 "
                                         "of JSON lines"));
  const auto refused = [&](const char* name, const char* what) {
    DataConfig named = config();
    named.path = {dir / name};
    EXPECT_THAT([&] { make(named); },
                ThrowsMessage<DataError>(AllOf(HasSubstr(what), HasSubstr("but must be text; "))))
        << name;
  };
  refused("text/package.json", "package.json: is a JSON object");
  refused("text/l*", "list.json: is a JSON list");
  refused("text/z.jsonl", "z.jsonl: is JSON lines");
  for (const char* other : {"text/a.cpp", "text/list.json", "text/package.json"})
    fs::remove(dir / other);
  refused("text", "z.jsonl: is JSON lines");
}

TEST_F(TextData, a_small_vocabulary_is_a_config_error) {
  put(dir / "text", std::string(34, 'a'));
  ModelConfig small;
  small.vocab_size = 255;
  EXPECT_THAT([&] { make_dataset(config(), small, 1); },
              ThrowsMessage<ConfigError>(
                  "model.vocab_size is 255, but data.type 'text' needs at least 256; raise it"));
}

}  // namespace
}  // namespace difftape::run
