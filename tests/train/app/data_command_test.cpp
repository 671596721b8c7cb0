// `difftape data`, run as a program, and training on its output.
#include "tests/support/sentencepiece.h"
#include "tests/train/run/loop/tiny.h"
#include "train/run/data/prepare/tokenizer.h"

namespace difftape::app {
namespace {

struct DataCommand : testing::Test {
  TinyProject project;

  Outcome data(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "data");
    return project.difftape(arguments);
  }
};

/// A text, a tokenizer trained on it, and its tokens in tokens.bin.
struct TokenizedText : DataCommand {
  TokenizedText() {
    std::vector<std::string> lines;
    for (int i = 0; i < 3000; ++i) lines.push_back(fmt::format("value {} of {}", i * i % 997, i));
    put(project / "corpus.txt", fmt::format("{}\n", fmt::join(lines, "\n")));
    put(project / "my.model", test::train_sentencepiece(lines, 600));
    prepared = data({"prepare", "corpus.txt", "--tokenizer", "my.model", "--out", "t.bin"});
  }
  Outcome train(const std::string& out, const std::string& tokens = "t.bin") {
    return project.difftape({"train", "tiny.yaml", "--out", out, "--set", "data.type=tokens",
                             "--set", "data.path=" + tokens, "--set", "data.eos_token_id=2",
                             "--set", "model.vocab_size=600"});
  }
  Outcome generate(const std::string& run, const std::vector<std::string>& more) {
    return project.difftape(joined({"generate", run, "--max-tokens", "6"}, more));
  }
  Outcome prepared;
};

TEST_F(TokenizedText, trains) {
  ASSERT_EQ(prepared.exit, 0) << prepared.err;
  EXPECT_THAT(prepared.out, HasSubstr("  data: {type: tokens, path: t.bin, eos_token_id: 2}\n"
                                      "  model: {vocab_size: 600}\n"));
  EXPECT_EQ(contents(project / "t.bin.model"), contents(project / "my.model"));
  test::output(train("run"));
}

TEST_F(TokenizedText, is_generated_by_a_run_that_was_moved) {
  ASSERT_EQ(train("run").exit, 0);
  const auto found =
      nlohmann::json::parse(project.difftape({"eval", "run", "--json"}).out, nullptr, false);
  const double bits_a_token = found.at("loss").get<double>() / std::log(2.0);
  EXPECT_LT(found.at("bits_per_byte"), bits_a_token / 1.5);
  EXPECT_GT(found.at("bits_per_byte"), bits_a_token / 8);
  fs::rename(project / "run", project / "elsewhere");
  for (const char* gone : {"t.bin", "t.bin.json", "t.bin.model", "my.model"})
    fs::remove(project / gone);
  const Outcome text = generate("elsewhere", {"--prompt", "value 12 of"});
  EXPECT_EQ(text.exit, 0) << text.err;
  EXPECT_THAT(text.out, StartsWith("value 12 of"));
  const Outcome json = generate("elsewhere", {"--prompt", "value 12 of", "--json"});
  const auto line = nlohmann::json::parse(json.out, nullptr, false);
  EXPECT_EQ(line.at("prompt"), "value 12 of");
  EXPECT_EQ(line.at("tokens").size(), 6U);
  EXPECT_EQ("value 12 of" + line.at("text").get<std::string>() + "\n", text.out);
  EXPECT_THAT(test::error(65, generate("elsewhere", {"--prompt", "caf\xe9"})),
              HasSubstr("--prompt: is not valid UTF-8 at byte 3, but my.model needs UTF-8"));
}

TEST_F(TokenizedText, reports_a_missing_or_changed_tokenizer) {
  put(project / "t.bin.model", "another");
  EXPECT_THAT(test::error(65, train("run")), HasSubstr("t.bin.model: is not the tokenizer of "));
  fs::remove(project / "t.bin.model");
  ASSERT_EQ(train("run").exit, 0);
  EXPECT_THAT(test::error(64, generate("run", {"--prompt", "value"})),
              HasSubstr("the tokenizer of this model is unknown"));
  EXPECT_EQ(generate("run", {"--tokens", "5,6"}).exit, 0);
}

/// Returns the evaluation of `run` with all of a file.
nlohmann::json evaluated(TinyProject& project, const std::vector<std::string>& more) {
  const auto arguments = joined({"eval", "run", "--json"}, more);
  return nlohmann::json::parse(test::output(project.difftape(arguments)));
}

TEST_F(TokenizedText, evaluates_text_by_the_tokenizer_of_the_model) {
  ASSERT_EQ(train("run").exit, 0);
  const auto tokens = evaluated(project, {"--data", "t.bin"});
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, {"--set", "data.type=text"}}) {
    const auto text = evaluated(project, joined({"--data", "corpus.txt"}, more));
    EXPECT_EQ(text.at("tokens"), tokens.at("tokens"));
    EXPECT_EQ(text.at("loss"), tokens.at("loss"));
    EXPECT_EQ(text.at("bits_per_byte"), tokens.at("bits_per_byte"));
  }
  // Right: the first token of each file has no predecessor; `data prepare` counts the tokens.
  fs::create_directory(project / "folder");
  Index targets = 0;
  for (const std::string name : {"folder/one.txt", "folder/two.txt"}) {
    put(project / name, name + "\f\n" + contents(project / "corpus.txt").substr(0, 3001));
    ASSERT_EQ(data({"prepare", name, "--tokenizer", "my.model", "--out", "p.bin"}).exit, 0);
    targets += static_cast<Index>(fs::file_size(project / "p.bin")) / 2 - 1;
  }
  EXPECT_EQ(evaluated(project, {"--data", "folder"}).at("tokens"), targets);
  put(project / "latin1.txt", "caf\xe9 au lait");
  EXPECT_THAT(test::error(65, project.difftape({"eval", "run", "--data", "latin1.txt"})),
              HasSubstr("latin1.txt: byte 3 is not UTF-8"));
}

TEST_F(TokenizedText, has_bits_per_byte_of_the_original_text) {
  // The default options of spm_train lose newlines and repeated spaces, so the pieces have fewer
  // bytes than the text. Right: loss x tokens / ln 2, per byte of corpus.txt.
  put(project / "lossy.model",
      test::train_lossy_sentencepiece({"value of", "0 1 2 3 4 5 6 7 8 9"}, 40));
  std::string text;
  for (int i = 0; i < 2000; ++i) text += fmt::format("value  {}\n\n  of   {}\n", i, i * i % 977);
  put(project / "corpus.txt", text);
  const Outcome lossy =
      data({"prepare", "corpus.txt", "--tokenizer", "lossy.model", "--out", "t.bin"});
  EXPECT_THAT(lossy.err, AllOf(HasSubstr("warning: lossy.model does not keep the text; lost: "),
                               HasSubstr(" newlines, "), HasSubstr(" spaces"),
                               HasSubstr("--byte_fallback --normalization_rule_name=identity")));
  ASSERT_EQ(train("run").exit, 0);
  EXPECT_THAT(generate("run", {"--prompt", "value QQ"}).err,
              HasSubstr("--prompt: 1 tokens replace characters that lossy.model does not have"));
  EXPECT_EQ(generate("run", {"--prompt", "value"}).err, "");
  for (const char* name : {"t.bin", "corpus.txt"}) {
    const auto found = evaluated(project, {"--data", name});
    const double nats = found.at("loss").get<double>() * found.at("tokens").get<double>();
    const double right = nats / (std::log(2.0) * static_cast<double>(text.size()));
    EXPECT_NEAR(found.at("bits_per_byte").get<double>() / right, 1, 1e-3) << name;
  }
}

TEST_F(TokenizedText, of_an_unknown_tokenizer_is_not_bytes) {
  fs::rename(project / "t.bin", project / "plain.bin");
  ASSERT_EQ(train("run", "plain.bin").exit, 0);
  const auto refused = [&](const std::vector<std::string>& arguments) {
    const std::string error = test::error(65, project.difftape(arguments));
    EXPECT_THAT(error, Not(HasSubstr("data.type")));
    return error;
  };
  EXPECT_THAT(refused({"eval", "run", "--data", "corpus.txt"}),
              HasSubstr("corpus.txt: is text, but the tokenizer of the model is unknown; give "
                        "token files of the same tokenizer\nin --data"));
  const auto no_bytes = HasSubstr(
      "the model was trained on token files whose tokenizer is unknown, but the data is bytes; "
      "give token files of the same tokenizer");
  EXPECT_THAT(refused({"eval", "run", "--data", "corpus.txt", "--set", "data.type=text"}),
              no_bytes);
  EXPECT_THAT(refused({"train", "tiny.yaml", "--init-from", "run", "--set", "model.vocab_size=600",
                       "--out", "next"}),
              no_bytes);
  EXPECT_FALSE(fs::exists(project / "next"));
  EXPECT_FALSE(evaluated(project, {"--data", "plain.bin"}).contains("bits_per_byte"));
}

TEST_F(TokenizedText, is_exported_and_imported_with_its_tokenizer) {
  ASSERT_EQ(train("run").exit, 0);
  const std::vector<std::string> prompt{"--prompt", "value 12 of"};
  const std::string written = test::output(generate("run", prompt));
  for (const std::string format : {"hf", "safetensors"}) {
    test::output(project.difftape({"export", "run", "--format", format, "--out", format}));
    if (format == "safetensors") put(project / "tokenizer.model", contents(project / "my.model"));
    test::output(project.difftape({"import", format, "--out", format + ".h5"}));
    EXPECT_EQ(test::output(generate(format + ".h5", prompt)), written);
    EXPECT_THAT(
        test::error(65, project.difftape({"train", "tiny.yaml", "--init-from", format + ".h5",
                                          "--set", "model.vocab_size=600", "--out", "next"})),
        HasSubstr("the model was trained with the tokenizer my.model, but the data has bytes"));
  }
  // Another program wrote the folder: config.json instead of metadata.
  std::string weights = contents(project / "hf/model.safetensors");
  weights.replace(weights.find("difftape_config"), 15, "difftape_kconfi");
  put(project / "hf/model.safetensors", weights);
  test::output(project.difftape({"import", "hf", "--out", "foreign.h5"}));
  EXPECT_EQ(test::output(generate("foreign.h5", prompt)), written);
  const auto refused = [&](const std::string& model) {
    put(project / "tokenizer.model", model);
    return test::error(65, project.difftape({"import", "safetensors", "--out", "m.h5"}));
  };
  const std::string remedy = "; remove it to import the weights without";
  EXPECT_THAT(refused("text"), HasSubstr("tokenizer.model: is not a SentencePiece model" + remedy));
  std::vector<std::string> lines;
  for (int i = 0; i < 500; ++i) lines.push_back(fmt::format("other text {}", i));
  EXPECT_THAT(refused(test::train_sentencepiece(lines, 400)),
              AllOf(HasSubstr("tokenizer.model: is not the tokenizer of "), HasSubstr(remedy)));
}

TEST_F(TokenizedText, that_changed_after_it_was_prepared_has_no_bits_per_byte) {
  ASSERT_EQ(train("run").exit, 0);
  ASSERT_EQ(data({"prepare", "corpus.txt", "--tokenizer", "my.model", "--out", "m.bin"}).exit, 0);
  fs::resize_file(project / "m.bin", 6000);
  EXPECT_THAT(test::error(65, project.difftape({"eval", "run", "--data", "m.bin"})),
              AllOf(HasSubstr("m.bin: its 3000 tokens are not those that"),
                    HasSubstr("m.bin.json if another program wrote them")));
  fs::remove(project / "m.bin.json");
  EXPECT_FALSE(evaluated(project, {"--data", "m.bin"}).contains("bits_per_byte"));
}

TEST_F(TokenizedText, without_provenance_has_no_bits_per_byte) {
  ASSERT_EQ(train("run").exit, 0);
  fs::copy(project / "t.bin", project / "bare.bin");
  const Outcome found = project.difftape({"eval", "run", "--json", "--data", "bare.bin"});
  EXPECT_FALSE(nlohmann::json::parse(test::output(found)).contains("bits_per_byte"));
  EXPECT_THAT(found.err, HasSubstr("no bits per byte: the tokens lack the size of their text"));
}

TEST_F(TokenizedText, of_another_tokenizer_is_refused) {
  ASSERT_EQ(train("run").exit, 0);
  std::vector<std::string> lines;
  for (int i = 0; i < 500; ++i) lines.push_back(fmt::format("other text {}", i));
  put(project / "other.model", test::train_sentencepiece(lines, 400));
  ASSERT_EQ(data({"prepare", "corpus.txt", "--tokenizer", "other.model", "--out", "o.bin"}).exit,
            0);
  const auto refused = HasSubstr(
      "the model was trained with the tokenizer my.model, but the data has other.model; tokenize "
      "the data with `difftape data prepare --tokenizer ");
  EXPECT_THAT(test::error(65, project.difftape({"eval", "run", "--data", "o.bin"})), refused);
  const std::vector<std::string> from{
      "train", "tiny.yaml", "--init-from", "run", "--set", "model.vocab_size=600", "--out", "next"};
  EXPECT_THAT(test::error(65, project.difftape(joined(from, {"--set", "data.type=tokens", "--set",
                                                             "data.path=o.bin"}))),
              refused);
  EXPECT_THAT(test::error(65, project.difftape(from)), HasSubstr("but the data has bytes"));
  EXPECT_FALSE(fs::exists(project / "next"));
  ASSERT_EQ(data({"prepare", "corpus.txt", "--tokenizer", "run", "--out", "same.bin"}).exit, 0);
  EXPECT_EQ(contents(project / "same.bin"), contents(project / "t.bin"));
}

TEST_F(TokenizedText, trains_from_the_folder_that_data_prepare_wrote) {
  fs::create_directory(project / "d");
  const std::string tokens = "d/c.bin";
  ASSERT_EQ(data({"prepare", "corpus.txt", "--tokenizer", "my.model", "--out", tokens}).exit, 0);
  const Outcome run = train("run", "d");
  EXPECT_EQ(run.exit, 0) << run.err;
  EXPECT_THAT(contents(project / "run/stdout.log"), HasSubstr("data.path: 1 of 3 files, "));
}

TEST_F(TokenizedText, works_with_bytes) {
  ASSERT_EQ(data({"prepare", "corpus.txt", "--out", "b.h5"}).exit, 0);
  ASSERT_EQ(train("run", "b.h5").exit, 0);
  EXPECT_THAT(test::output(generate("run", {"--prompt", "value"})), StartsWith("value"));
}

TEST_F(DataCommand, replaces_only_its_own_outputs) {
  put(project / "corpus.txt", "text");
  fs::create_directory(project / "t.bin");
  EXPECT_EQ(data({"prepare", "corpus.txt", "--out", "t.bin"}).exit, 74);
  test::error(74, data({"prepare", "corpus.txt", "--out", "corpus.txt"}));
  EXPECT_EQ(contents(project / "corpus.txt"), "text");
  EXPECT_EQ(data({"prepare", "none.txt", "--out", "u.bin"}).exit, 66);
  EXPECT_EQ(data({"prepare", "corpus.txt", "--out", "u.bin", "--eos-token-id", "-2"}).exit, 64);
  EXPECT_FALSE(fs::exists(project / "u.bin"));
}

TEST_F(DataCommand, splits_a_corpus_for_validation_by_domain) {
  for (const char* domain : {"apples", "pears"}) {
    std::string lines;
    for (int i = 0; i < 60; ++i) {
      std::string text;
      for (int k = 0; k < 40; ++k)
        text += fmt::format("{} {} ", domain, (i * 977 + k * k * 61) % 99991);
      lines += fmt::format("{{\"text\": \"{}\"}}\n", text);
    }
    lines += lines.substr(0, lines.find('\n') + 1);
    put(project / (std::string(domain) + ".jsonl"), lines);
  }
  const std::string made = test::output(
      data({"prepare", "apples.jsonl", "pears.jsonl", "--out", "train.bin", "--val-out", "val",
            "--val-fraction", "0.1", "--drop-duplicates", "0.3", "--max-overlap", "0.5"}));
  EXPECT_THAT(made,
              StartsWith("domain  documents  dropped  training bytes  held-out bytes  overlap\n"));
  EXPECT_THAT(made, testing::ContainsRegex("\napples +61 +1 "));
  EXPECT_THAT(made, testing::ContainsRegex("\npears +61 +1 .* %\n"));
  EXPECT_THAT(made, HasSubstr("  data: {type: tokens, path: train.bin, val_path: val/*.bin}\n"));
  const Outcome run = project.difftape(
      {"train", "tiny.yaml", "--out", "run", "--set", "data.type=tokens", "--set",
       "data.path=train.bin", "--set", "data.val_path=val/*.bin", "--set", "model.vocab_size=256"});
  ASSERT_EQ(run.exit, 0) << run.err;
  EXPECT_TRUE(metrics_lines(project / "run").back().contains("val/loss/pears"));
  EXPECT_THAT(test::error(64, data({"prepare", "pears.jsonl", "--out", "t.bin", "--val-out", "v"})),
              HasSubstr("--val-out: needs the fraction to hold out"));
}

TEST_F(DataCommand, stopped_by_a_signal_leaves_nothing_behind) {
  put(project / "corpus.txt", std::string(100'000'000, 'a'));
  Process process({"data", "prepare", "corpus.txt", "--out", "t.bin"},
                  {.directory = project.path()});
  EXPECT_TRUE(test::becomes_true([&] { return fs::exists(project / "t.bin.tmp"); }));
  process.signal(SIGTERM);
  const Outcome stopped = process.wait();
  EXPECT_EQ(stopped.exit, 143) << stopped.err;
  EXPECT_THAT(stopped.err, HasSubstr("stopped; no file is written"));
  for (const char* name : {"t.bin", "t.bin.tmp", "t.bin.json"})
    EXPECT_FALSE(fs::exists(project / name)) << name;
}

TEST_F(DataCommand, of_a_text_that_becomes_shorter_is_an_error) {
  put(project / "corpus.txt", std::string(100'000'000, 'a'));
  Process process({"data", "prepare", "corpus.txt", "--out", "t.bin"},
                  {.directory = project.path()});
  EXPECT_TRUE(test::becomes_true([&] { return fs::exists(project / "t.bin.tmp"); }));
  fs::resize_file(project / "corpus.txt", 1000);
  EXPECT_THAT(test::error(65, process.wait()),
              HasSubstr("corpus.txt: the file changed while it was read"));
  EXPECT_FALSE(fs::exists(project / "t.bin.tmp"));
}

TEST_F(DataCommand, in_utf16_or_with_nan_is_named) {
  using namespace std::string_literals;
  const std::string line = "{\"text\": \"a\"}\n";
  std::string little;
  for (const char c : line) little += {c, '\0'};
  for (const auto& [text, name] : std::vector<std::pair<std::string, std::string>>{
           {"\xFF\xFE" + little, "UTF-16"},
           {little, "UTF-16LE"},
           {"\0"s + little.substr(0, little.size() - 1), "UTF-16BE"}}) {
    put(project / "x.jsonl", text);
    EXPECT_THAT(test::error(65, data({"prepare", "x.jsonl", "--out", "t.bin"})),
                HasSubstr("x.jsonl: is UTF-16, but must be UTF-8; convert it with iconv -f " +
                          name + " -t UTF-8"));
  }
  for (const char* number : {"NaN", "Infinity", "-Infinity"}) {
    put(project / "x.jsonl",
        fmt::format("{{\"text\": \"a\"}}\n{{\"text\": \"a\", \"score\": {}}}\n", number));
    EXPECT_THAT(test::error(65, data({"prepare", "x.jsonl", "--out", "t.bin"})),
                AllOf(HasSubstr("x.jsonl:2: is not valid JSON"), HasSubstr("has no NaN")));
  }
}

TEST_F(DataCommand, on_a_full_disk_leaves_nothing_behind) {
  put(project / "corpus.txt", std::string(300'000, 'a'));
  EXPECT_THAT(test::error(74, test::run({"data", "prepare", "corpus.txt", "--out", "t.bin"},
                                        {.directory = project.path(), .largest_file = 100'000})),
              HasSubstr("cannot write t.bin: File too large"));
  EXPECT_FALSE(fs::exists(project / "t.bin"));
  EXPECT_FALSE(fs::exists(project / "t.bin.tmp"));
  EXPECT_FALSE(fs::exists(project / "t.bin.json"));
}

}  // namespace
}  // namespace difftape::app
