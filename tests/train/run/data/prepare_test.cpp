// Tests the conversion of text to token files, and the round trip through the training data.
#include "train/run/data/prepare/prepare.h"
#include "tests/support/test.h"

#include "tests/support/sentencepiece.h"
#include "train/run/data/dataset.h"
#include "train/run/data/sources.h"
#include "train/run/records/h5.h"

namespace difftape::run {
namespace {

struct Prepare : testing::Test {
  ScratchDir dir;

  PrepareRequest request(const std::vector<std::string>& names, const char* out = "out.bin") {
    std::vector<std::string> paths;
    for (const std::string& name : names) paths.push_back((dir / name).string());
    return {
        .files = find_source_files(paths).files, .out = dir / out, .tokenizer = byte_tokenizer()};
  }
  /// Returns the tokens of a .bin.
  std::vector<std::int32_t> tokens(const char* name = "out.bin") {
    const std::string bytes = contents(dir / name);
    std::vector<std::int32_t> tokens;
    for (size_t i = 0; i + 1 < bytes.size(); i += 2)
      tokens.push_back(static_cast<unsigned char>(bytes[i]) |
                       static_cast<unsigned char>(bytes[i + 1]) << 8);
    return tokens;
  }
  /// Expects this error, and no new files.
  template <class E>
  void fails(const PrepareRequest& request, const std::string& what) {
    const auto entries = [&] {
      std::vector<std::string> names;
      for (const auto& entry : fs::directory_iterator(dir.path()))
        names.push_back(entry.path().filename().string());
      std::ranges::sort(names);
      return names;
    };
    const auto before = entries();
    EXPECT_THAT([&] { prepare_tokens(request); }, ThrowsMessage<E>(HasSubstr(what)));
    EXPECT_EQ(entries(), before);
  }
};

TEST_F(Prepare, bytes_train_like_the_text_itself) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += static_cast<char>('a' + i * i % 26);
  put(dir / "text", text);
  const Prepared made = prepare_tokens(request({"text"}));
  EXPECT_EQ(made.tokens, 3000);
  EXPECT_EQ(made.vocab_size, 256);
  EXPECT_EQ(made.eos_token_id, -1);
  DataConfig config{.path = {(dir / "text").string()}, .seq_len = 16, .batch_size = 4};
  const auto direct = make_dataset(config, ModelConfig{}, 1);
  config.type = DataKind::tokens;
  config.path = {(dir / "out.bin").string()};
  const auto prepared = make_dataset(config, ModelConfig{}, 1);
  for (Index step = 0; step < 20; ++step)
    EXPECT_EQ(prepared->train_batch(step, 0).tokens, direct->train_batch(step, 0).tokens);
  EXPECT_EQ(prepared->info()["xxh3_128"], made.digest);
}

TEST_F(Prepare, documents_end_with_their_token) {
  put(dir / "a.txt", "ab");
  put(dir / "b.jsonl",
      "{\"text\": \"c\\u00e9\", \"id\": 1}\n\n{\"text\": \"\"}\r\n{\"text\": \"d\"}");
  PrepareRequest asked = request({"a.txt", "b.jsonl"});
  asked.eos_token_id = 256;
  const Prepared made = prepare_tokens(asked);
  EXPECT_THAT(tokens(), ElementsAre('a', 'b', 256, 'c', 0xc3, 0xa9, 256, 256, 'd', 256));
  EXPECT_EQ(made.documents, 4);
  EXPECT_EQ(made.bytes, 6);
  EXPECT_EQ(made.vocab_size, 257);
}

TEST_F(Prepare, rejects_an_end_token_that_the_text_contains) {
  put(dir / "a.txt", "one\ntwo");
  PrepareRequest asked = request({"a.txt"});
  asked.eos_token_id = '\n';
  fails<DataError>(asked, "--eos-token-id 10: occurs in the text");
  EXPECT_FALSE(fs::exists(dir / "out.bin"));
  put(dir / "a.txt", "one");
  EXPECT_EQ(prepare_tokens(asked).tokens, 4) << "text cannot contain it";
}

TEST_F(Prepare, records_the_provenance_of_the_tokens) {
  put(dir / "a.txt", "some text");
  const Prepared made = prepare_tokens(request({"a.txt"}));
  const auto beside = nlohmann::json::parse(contents(dir / "out.bin.json"));
  EXPECT_EQ(beside["tokens"], 9);
  EXPECT_EQ(beside["xxh3_128"], made.digest);
  EXPECT_EQ(beside["tokenizer"]["name"], "bytes");
  EXPECT_EQ(beside["files"][0]["path"], (dir / "a.txt").string());
  EXPECT_EQ(beside["files"][0]["bytes"], 9);
  prepare_tokens(request({"a.txt"}, "out.h5"));
  const h5::File file = h5::File::open(dir / "out.h5");
  EXPECT_EQ(file.read<std::int32_t>("tokens").front(), 's');
  EXPECT_EQ(nlohmann::json::parse(file.string_attribute("/", "provenance"))["tokens"], 9);
}

TEST_F(Prepare, refuses_tokens_that_another_program_wrote_over_its_own) {
  put(dir / "a.txt", std::string(500, 'a'));
  for (const char* name : {"out.bin", "out.h5"}) {
    prepare_tokens(request({"a.txt"}, name));
    const DataConfig config{.type = DataKind::tokens, .path = {dir / name}, .seq_len = 16};
    EXPECT_EQ(make_dataset(config, ModelConfig{}, 1)->tokenizer().name, "bytes");
    std::string bytes = contents(dir / name);
    const std::string two = name == std::string("out.bin") ? std::string("a\0a\0", 4)
                                                           : std::string("a\0\0\0a\0\0\0", 8);
    const std::size_t last = bytes.rfind(two);
    bytes[last] = 'b';
    put(dir / name, bytes);
    EXPECT_THAT(
        [&] { make_dataset(config, ModelConfig{}, 1); },
        ThrowsMessage<DataError>(HasSubstr(
            "tokens are not those that `difftape data prepare` described, whose digest is ")));
  }
  for (const char* told : {"out.bin.json", "out.bin.model"}) fs::remove(dir / told);
  const DataConfig config{.type = DataKind::tokens, .path = {dir / "out.bin"}, .seq_len = 16};
  EXPECT_FALSE(make_dataset(config, ModelConfig{}, 1)->tokenizer().is_known());
}

TEST_F(Prepare, cuts_long_documents_after_lines_and_shows_progress) {
  std::string line(1 << 20, 'x');
  line.back() = '\n';
  std::string text;
  while (text.size() < 40'000'000) text += line;
  put(dir / "text", text);
  PrepareRequest asked = request({"text"});
  std::vector<std::size_t> pieces;
  asked.tokenizer.encode = [&](std::string_view piece) {
    EXPECT_TRUE(piece.ends_with('\n'));
    pieces.push_back(piece.size());
    return std::vector<std::int32_t>{1};
  };
  std::vector<Index> done;
  asked.on_progress = [&](Index bytes, Index total) {
    done.push_back(bytes);
    EXPECT_EQ(total, std::ssize(text));
  };
  const Prepared made = prepare_tokens(asked);
  EXPECT_EQ(made.documents, 1);
  EXPECT_EQ(made.bytes, std::ssize(text));
  EXPECT_THAT(pieces, testing::SizeIs(testing::Gt(2u)));
  EXPECT_EQ(done.back(), std::ssize(text));
}

TEST_F(Prepare, rejects_unreadable_input_and_leaves_nothing_behind) {
  put(dir / "binary", std::string("ab\0c", 4));
  fails<DataError>(request({"binary"}),
                   "binary: byte 2 is 0, but the file must be text; leave it out");
  put(dir / "utf16", "\xFF\xFE" + std::string("a\0", 2));
  fails<DataError>(request({"utf16"}), "utf16: is UTF-16, but must be UTF-8; convert it with ");
  put(dir / "list.jsonl", "{\"text\": \"a\"}\n[1]\n");
  fails<DataError>(request({"list.jsonl"}), "list.jsonl:2: is not a JSON object");
  put(dir / "key.jsonl", "{\"text\": \"a\"}\n{\"body\": \"b\"}\n");
  fails<DataError>(request({"key.jsonl"}),
                   "key.jsonl:2: has no string under \"text\"; select another key with --key");
  put(dir / "empty", "");
  fails<DataError>(request({"empty"}),
                   "SOURCES: the files contain no text to train on; give other files");
  put(dir / "text", "text");
  fails<UsageError>(request({"text"}, "out.txt"), "out.txt: must end in .bin or .h5");
  PrepareRequest wide = request({"text"});
  wide.eos_token_id = 65536;
  fails<UsageError>(wide,
                    "the vocabulary has 65537 tokens, but a .bin can store 65536; write a .h5");
  fails<OutputError>(request({"text"}, "none/out.bin"), "none/out.bin: No such file");
  wide = request({"binary"});
  wide.files = {{dir / "gone", "gone"}};
  fails<MissingInput>(wide, "cannot read");
}

TEST_F(Prepare, json_lines_are_recognized_and_their_faults_explained) {
  const std::string lines = "{\"text\": \"ab\"}\n{\"text\": \"c\"}\n";
  for (const char* name : {"a.JSONL", "a.json", "a.txt"}) {
    put(dir / name, lines);
    const Prepared made = prepare_tokens(request({name}));
    EXPECT_EQ(made.documents, 2) << name;
    EXPECT_EQ(made.bytes, 3) << name;
    fs::remove(dir / name);
  }
  for (const char* name : {"out.bin", "out.bin.json"}) fs::remove(dir / name);
  put(dir / "s.jsonl", "{\"text\": \"ok\"}\n{\"text\": \"a\\ud800b\"}\n");
  fails<DataError>(request({"s.jsonl"}),
                   "s.jsonl:2: is not valid JSON near byte 18: invalid string: "
                   "surrogate U+D800..U+DBFF must be followed by "
                   "U+DC00..U+DFFF; remove the lone surrogate");
  put(dir / "l.jsonl", "{\"text\": \"caf\xe9\"}\n");
  fails<DataError>(request({"l.jsonl"}),
                   "l.jsonl:1: is not valid JSON near byte 15: invalid string: ill-formed UTF-8 "
                   "byte; convert the file to UTF-8, for example with iconv -f LATIN1 -t UTF-8");
  put(dir / "list.json", "[\n {\"text\": \"a\"}]\n");
  fails<DataError>(request({"list.json"}),
                   "is a JSON list, but must be text or JSON lines; "
                   "convert it with `jq -c '.[]' FILE > FILE.jsonl`");
  put(dir / "p.txt", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n");
  fails<DataError>(request({"p.txt"}),
                   "p.txt: is a Git LFS pointer, but must be text or JSON "
                   "lines; fetch the file with `git lfs pull`");
}

TEST_F(Prepare, continues_after_touch_and_notices_other_contents) {
  const std::string text(20'000'000, 'a');  // larger than files that are kept in memory
  put(dir / "text", text);
  PrepareRequest asked = request({"text"});
  const auto later = [&] {
    fs::last_write_time(dir / "text", fs::last_write_time(dir / "text") + std::chrono::hours(1));
  };
  asked.on_progress = [&](Index, Index) { later(); };
  EXPECT_EQ(prepare_tokens(asked).bytes, std::ssize(text));
  for (const char* name : {"out.bin", "out.bin.json"}) fs::remove(dir / name);
  asked.on_progress = [&](Index, Index) {
    std::fstream(dir / "text", std::ios::in | std::ios::out | std::ios::binary) << 'b';
    later();
  };
  fails<DataError>(asked, "text: the file changed while it was read; restore it and start again");
}

TEST_F(Prepare, takes_json_from_a_folder_as_text) {
  fs::create_directory(dir / "code");
  put(dir / "code/package.json", "{\"name\": \"x\"}");
  put(dir / "code/z.jsonl", "{\"text\": \"a\"}\n");
  EXPECT_EQ(prepare_tokens(request({"code"})).bytes, 13 + 1);
  for (const char* name : {"out.bin", "out.bin.json"}) fs::remove(dir / name);
  fails<DataError>(request({"code/package.json"}), "package.json: is a JSON object, but must be ");
}

struct SentencePiece : Prepare {
  SentencePiece() {
    std::vector<std::string> lines;
    for (int i = 0; i < 2000; ++i)
      lines.push_back(fmt::format("  the step {} of the tape, then value {}", i, i * i));
    put(dir / "bpe.model", test::train_sentencepiece(lines, 600));
  }
};

TEST_F(SentencePiece, gives_fewer_tokens_than_bytes_and_names_its_model) {
  put(dir / "text", "  the step 7 of the tape\n\tthen caf\u00e9\n");
  PrepareRequest asked = request({"text"});
  asked.tokenizer = sentencepiece_tokenizer(dir / "bpe.model");
  EXPECT_EQ(asked.tokenizer.vocab_size, 600);
  const Prepared made = prepare_tokens(asked);
  EXPECT_LT(made.tokens, made.bytes * 2 / 3);
  EXPECT_EQ(tokens().back(), made.eos_token_id);
  EXPECT_EQ(std::ranges::count(tokens(), asked.tokenizer.encode("\n").at(0)), 2);
  const auto beside = nlohmann::json::parse(contents(dir / "out.bin.json"));
  EXPECT_EQ(beside["tokenizer"]["name"], "bpe.model");
  EXPECT_EQ(beside["tokenizer"]["xxh3_128"], asked.tokenizer.digest);
}

TEST_F(SentencePiece, is_stored_with_the_tokens_and_restores_their_text) {
  const std::string text = "  the step 7 of the tape\n\tthen caf\u00e9 \u2192 \U0001F600\n";
  put(dir / "text", text + text + text);
  for (const char* out : {"out.bin", "out.h5"}) {
    PrepareRequest asked = request({"text"}, out);
    asked.tokenizer = sentencepiece_tokenizer(dir / "bpe.model");
    prepare_tokens(asked);
    ModelConfig model;
    model.vocab_size = 600;
    const DataConfig config{
        .type = DataKind::tokens, .path = {(dir / out).string()}, .seq_len = 8, .batch_size = 1};
    const TokenizerFile kept = make_dataset(config, model, 1)->tokenizer();
    EXPECT_EQ(kept.name, "bpe.model");
    EXPECT_EQ(kept.model, contents(dir / "bpe.model"));
    const Tokenizer tokenizer = tokenizer_of(kept);
    const std::vector<std::int32_t> tokens = tokenizer.encode(text);
    EXPECT_EQ(tokenizer.decode(tokens), text);
    Index bytes = 0;
    std::string streamed;
    TextStream stream(tokenizer, std::span(tokens).first(2));
    for (const std::int32_t token : tokens) bytes += tokenizer.bytes(token);
    for (const std::int32_t token : std::span(tokens).subspan(2)) streamed += stream.add(token);
    EXPECT_EQ(bytes, std::ssize(text));
    EXPECT_EQ(tokenizer.decode(std::span(tokens).first(2)) + streamed + stream.rest(), text);
  }
}

TEST_F(SentencePiece, rejects_other_text_and_other_files) {
  put(dir / "latin1", "caf\xe9 au lait");
  PrepareRequest asked = request({"latin1"});
  asked.tokenizer = sentencepiece_tokenizer(dir / "bpe.model");
  fails<DataError>(asked, "latin1: byte 3 is not UTF-8, but the file must be; convert it");
  EXPECT_THAT([&] { sentencepiece_tokenizer(dir / "latin1"); },
              ThrowsMessage<DataError>(HasSubstr("latin1: is not a SentencePiece model")));
  put(dir / "lfs.model", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n");
  EXPECT_THAT([&] { sentencepiece_tokenizer(dir / "lfs.model"); },
              ThrowsMessage<DataError>(HasSubstr("lfs.model: is a Git LFS pointer, but must be a "
                                                 "SentencePiece model; fetch the file with")));
}

TEST_F(SentencePiece, gives_a_long_text_the_same_tokens_in_parts) {
  std::string text;
  for (int i = 0; std::ssize(text) < 3 * std::ssize(std::string(kPartBytes, 'x')); ++i)
    text += fmt::format("  the step {} of\n\n the tape\n", i * 31 % 1000);
  const Tokenizer tokenizer = sentencepiece_tokenizer(dir / "bpe.model");
  std::vector<std::int32_t> parts;
  std::size_t longest = 0;
  encode_in_parts(tokenizer, text, false, [&](std::string_view part, auto tokens) {
    longest = std::max(longest, part.size());
    parts.insert(parts.end(), tokens.begin(), tokens.end());
  });
  EXPECT_LE(longest, kPartBytes);
  EXPECT_EQ(parts, tokenizer.encode(text));
}

TEST_F(SentencePiece, that_loses_text_is_reported_with_counts) {
  // The usual defaults of spm_train: newlines and repeated spaces become one space, and characters
  // out of the vocabulary <unk>.
  const std::string model =
      test::train_lossy_sentencepiece({"the step of the tape", "value of"}, 24);
  put(dir / "lossy.model", model);
  put(dir / "text", "the step\nof the tape\nvalue  of \u6a21 tape\n");
  PrepareRequest asked = request({"text"});
  asked.tokenizer = sentencepiece_tokenizer(dir / "lossy.model");
  const Prepared made = prepare_tokens(asked);
  // By hand: three newlines are lost; one of the two spaces, against which two newlines within the
  // text became spaces; \u6a21 is unknown.
  EXPECT_EQ(made.loss.newlines, 3);
  EXPECT_EQ(made.loss.unknown, 1);
  EXPECT_EQ(made.loss.characters, 1);
  asked.tokenizer = sentencepiece_tokenizer(dir / "bpe.model");
  EXPECT_FALSE(prepare_tokens(asked).loss.any());
}

}  // namespace
}  // namespace difftape::run
