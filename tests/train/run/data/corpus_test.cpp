// Tests the division of documents into training, validation and dropped documents, written as token
// files.
#include "train/run/data/prepare/corpus.h"

#include "core/random.h"
#include "tests/train/run/loop/tiny.h"
#include "train/run/data/dataset.h"
#include "train/run/data/prepare/prepare.h"
#include "train/run/data/sources.h"
#include "train/run/loop/train_state.h"

namespace difftape::run {
namespace {

std::string words(std::uint64_t seed, std::size_t size) {
  const RandomStream stream(seed, "words");
  std::string text;
  for (std::uint64_t i = 0; text.size() < size; ++i)
    text += stream.below(i, 6) == 0 ? ' ' : static_cast<char>('a' + stream.below(i, 26));
  return text;
}

struct CorpusFiles : testing::Test {
  ScratchDir dir;

  /// Writes one JSON line per document.
  void put_lines(const std::string& name, const std::vector<nlohmann::json>& documents) {
    std::string lines;
    for (const nlohmann::json& each : documents) lines += each.dump() + "\n";
    put(dir / name, lines);
  }
  /// Returns random documents of 200 to 800 bytes.
  static std::vector<nlohmann::json> documents(std::uint64_t seed, std::uint64_t count = 60) {
    std::vector<nlohmann::json> all;
    for (std::uint64_t i = 0; i < count; ++i)
      all.push_back({{"text", words(1000 * seed + i, 200 + 100 * (i % 7))}});
    return all;
  }
  PrepareRequest request(const std::vector<std::string>& names) {
    std::vector<std::string> paths;
    for (const std::string& name : names) paths.push_back((dir / name).string());
    return {.files = find_source_files(paths).files,
            .out = dir / "train.bin",
            .tokenizer = byte_tokenizer(),
            .options = {.drop_duplicates = 0.3, .val_fraction = 0.2},
            .val_out = dir / "val"};
  }
  /// Returns the text of a .bin of byte tokens.
  std::string text(const std::string& name) {
    const std::string stored = contents(dir / name);
    std::string text;
    for (size_t i = 0; i < stored.size(); i += 2) text += stored[i];
    return text;
  }
  nlohmann::json told(const std::string& name) {
    return nlohmann::json::parse(contents(dir / (name + ".json")));
  }
};

TEST_F(CorpusFiles, are_divided_by_document_within_each_domain) {
  put_lines("a.jsonl", documents(1));
  put_lines("b.jsonl", documents(2));
  const Prepared made = prepare_tokens(request({"a.jsonl", "b.jsonl"}));
  ASSERT_EQ(made.domains.size(), 2u);
  const std::string train = text("train.bin");
  for (const DomainCounts& domain : made.domains) {
    const std::string held_out = text("val/" + domain.name + ".bin");
    EXPECT_EQ(domain.documents, 60);
    EXPECT_EQ(domain.dropped, 0);
    EXPECT_EQ(domain.overlap(), 0);
    EXPECT_EQ(std::ssize(held_out), domain.val_bytes);
    const auto all = static_cast<double>(domain.val_bytes + domain.train_bytes);
    EXPECT_NEAR(static_cast<double>(domain.val_bytes) / all, 0.2, 0.02);
    Index validate = 0;
    for (const nlohmann::json& each : documents(domain.name == "a" ? 1 : 2)) {
      const auto document = each["text"].get<std::string>();
      const bool validates = held_out.find(document) != std::string::npos;
      EXPECT_NE(validates, train.find(document) != std::string::npos)
          << "in training or in validation, not both";
      validate += validates;
    }
    EXPECT_EQ(validate, domain.held_out);
  }
  EXPECT_EQ(made.tokens, std::ssize(train));
}

TEST_F(CorpusFiles, record_how_they_were_divided) {
  std::vector<nlohmann::json> lines = documents(1);
  lines.push_back(lines[0]);
  put_lines("a.jsonl", lines);
  const Prepared made = prepare_tokens(request({"a.jsonl"}));
  for (const char* file : {"train.bin", "val/a.bin"}) {
    const nlohmann::json json = told(file);
    EXPECT_EQ(json["options"], (nlohmann::json{{"drop_duplicates", 0.3}, {"val_fraction", 0.2}}));
    EXPECT_EQ(json["files"][0]["bytes"], fs::file_size(dir / "a.jsonl"));
    EXPECT_EQ(json["domains"][0]["documents"], 61);
    EXPECT_EQ(json["domains"][0]["dropped"], 1);
    EXPECT_EQ(json["domains"][0]["dropped_bytes"], lines[0]["text"].get<std::string>().size());
    EXPECT_EQ(json["domains"][0]["overlap"], 0);
  }
  EXPECT_EQ(told("train.bin")["part"], "train");
  EXPECT_EQ(told("train.bin")["bytes"], made.domains[0].train_bytes);
  EXPECT_EQ(told("val/a.bin")["part"], "val/a");
  EXPECT_EQ(told("val/a.bin")["bytes"], made.domains[0].val_bytes);
  EXPECT_EQ(told("val/a.bin")["documents"], made.domains[0].held_out);
}

TEST_F(CorpusFiles, keep_groups_and_equal_documents_together) {
  std::vector<nlohmann::json> lines = documents(3, 100);
  for (size_t i = 0; i < lines.size(); ++i)
    if (i % 10 != 0) lines[i]["group"] = fmt::format("folder {}", i % 20);
  lines[10] = lines[20] = lines[30] = lines[40];
  put_lines("a.jsonl", lines);
  PrepareRequest asked = request({"a.jsonl"});
  asked.options.drop_duplicates.reset();
  prepare_tokens(asked);
  const std::string held_out = text("val/a.bin");
  std::map<std::string, std::set<bool>> validate;
  for (const nlohmann::json& line : lines) {
    const auto document = line["text"].get<std::string>();
    validate[line.value("group", document)].insert(held_out.find(document) != std::string::npos);
  }
  Index groups = 0;
  for (const auto& [group, parts] : validate) {
    EXPECT_EQ(parts.size(), 1u) << group;
    groups += group.starts_with("folder") && parts.contains(true);
  }
  EXPECT_GT(groups, 0);
}

TEST_F(CorpusFiles, are_divided_alike_in_any_order_and_dropped_if_others_contain_them) {
  std::vector<nlohmann::json> a = documents(1), b = documents(2);
  b[5]["text"] = a[6]["text"].get<std::string>().substr(0, 500) + "shorter";
  put_lines("a.jsonl", a);
  put_lines("b.jsonl", b);
  const Prepared made = prepare_tokens(request({"a.jsonl", "b.jsonl"}));
  EXPECT_EQ(made.domains[0].dropped, 0);
  EXPECT_EQ(made.domains[1].dropped, 1);
  const std::string before = text("val/a.bin");
  PrepareRequest again = request({"b.jsonl", "a.jsonl"});
  std::ranges::reverse(again.files);
  prepare_tokens(again);
  EXPECT_EQ(text("val/a.bin"), before);
}

TEST_F(CorpusFiles, measure_and_limit_the_overlap_of_validation_with_training) {
  // 100 bytes of every document, between 1/2 and 1/8 of it, come from one common text.
  std::vector<nlohmann::json> lines = documents(1);
  const std::string common = words(9, 100);
  for (nlohmann::json& line : lines) line["text"] = line["text"].get<std::string>() + common;
  put_lines("a.jsonl", lines);
  PrepareRequest asked = request({"a.jsonl"});
  asked.options.drop_duplicates.reset();
  const Prepared made = prepare_tokens(asked);
  // Bytes before the common text also count if a training document happens to contain them.
  const std::string train = text("train.bin"), held_out = text("val/a.bin");
  Index documents_held_out = 0, shared = 0;
  for (const nlohmann::json& line : lines) {
    const auto document = line["text"].get<std::string>();
    if (held_out.find(document) == std::string::npos) continue;
    std::size_t size = common.size();
    while (train.find(document.substr(document.size() - size - 1)) != std::string::npos) ++size;
    documents_held_out += 1;
    shared += static_cast<Index>(size);
  }
  EXPECT_EQ(documents_held_out, made.domains[0].held_out);
  EXPECT_EQ(made.domains[0].shared_bytes, shared);
  EXPECT_GE(shared, 100 * documents_held_out);
  EXPECT_GT(made.domains[0].overlap(), 0.17);
  asked.options.max_overlap = 0.17;
  const Prepared limited = prepare_tokens(asked);
  EXPECT_LE(limited.domains[0].overlap(), 0.17);
  EXPECT_GT(limited.domains[0].overlap(), 0.14);
  EXPECT_EQ(limited.domains[0].dropped + limited.domains[0].held_out, made.domains[0].held_out);
  EXPECT_EQ(limited.domains[0].train_bytes, made.domains[0].train_bytes);
  asked.options.max_overlap = 0.01;
  EXPECT_THAT([&] { prepare_tokens(asked); },
              ThrowsMessage<DataError>(HasSubstr(
                  "domain a: every held-out document shares more than 0.01 of its bytes")));
}

TEST_F(CorpusFiles, that_cannot_be_divided_are_rejected) {
  put_lines("a.jsonl", documents(1));
  put_lines("copy.jsonl", documents(1));
  put_lines("few.jsonl", documents(2, 1));
  const auto expect_error = [&]<class E>(const PrepareRequest& asked, const std::string& what) {
    EXPECT_THAT([&] { prepare_tokens(asked); }, ThrowsMessage<E>(HasSubstr(what)));
    EXPECT_FALSE(fs::exists(dir / "train.bin"));
    EXPECT_FALSE(fs::exists(dir / "val/a.bin"));
  };
  expect_error.operator()<DataError>(
      request({"a.jsonl", "few.jsonl"}),
      "domain few: 0 of 200 bytes can be held out as whole documents or groups, of which there are "
      "1, but --val-fraction is 0.2");
  put_lines("inside.jsonl", {{{"text", documents(1)[6]["text"].get<std::string>().substr(9)}}});
  expect_error.operator()<DataError>(
      request({"a.jsonl", "inside.jsonl"}),
      "domain inside: all documents are near-duplicates of longer ones in other domains");
  PrepareRequest wrong = request({"a.jsonl"});
  wrong.options.val_fraction = 1;
  expect_error.operator()<UsageError>(wrong, "--val-fraction: is 1, but must be above 0");
  wrong = request({"a.jsonl"});
  wrong.options.drop_duplicates = -0.1;
  expect_error.operator()<UsageError>(wrong, "--drop-duplicates: is -0.1, but must be at least 0");
  wrong = request({"a.jsonl"});
  wrong.options.val_fraction.reset();
  expect_error.operator()<UsageError>(wrong, "--val-out: needs the fraction to hold out");
  wrong = request({"a.jsonl"});
  wrong.val_out.clear();
  expect_error.operator()<UsageError>(wrong, "--val-fraction: needs a directory");
  wrong.options.val_fraction.reset();
  wrong.options.max_overlap = 0.1;
  expect_error.operator()<UsageError>(wrong, "--max-overlap: needs held-out documents");
  fs::create_directory(dir / "val");
  put(dir / "val/other.bin", "");
  expect_error.operator()<OutputError>(request({"a.jsonl"}),
                                       "val/other.bin belongs to no domain of this corpus");
}

TEST(Documents, begin_after_the_end_token_of_the_previous_one) {
  const Batch batch{2, 5, {7, 9, 7, 7, 9, 9, 9, 7, 9, 7, 7, 7}};
  EXPECT_THAT(*batch.document_offsets(9), ElementsAre(0, 0, 2, 2, 2, 0, 1, 1, 3, 3));
  EXPECT_EQ(batch.document_offsets(-1), nullptr);
}

TEST(Documents, change_the_loss_of_a_run_exactly_if_their_end_token_occurs) {
  TinyProject project;
  const auto loss_with = [&](Index eos_token_id) {
    project.config.data.eos_token_id = eos_token_id;
    TrainState state(project.config);
    Tape tape(Tape::Mode::inference);
    return state.loss(tape, state.data->train_batch(0, 0)).value().item();
  };
  const real whole = loss_with(-1);
  EXPECT_EQ(loss_with(0), whole) << "text contains no zero byte";
  EXPECT_NE(loss_with(' '), whole);
}

}  // namespace
}  // namespace difftape::run
