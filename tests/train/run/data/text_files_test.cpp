// Tests text of several files, which train, validate or are dropped as a whole.
#include "core/random.h"
#include "tests/support/test.h"
#include "train/run/data/dataset.h"
#include "train/run/data/domains.h"
#include "train/run/data/prepare/tokenizer.h"
#include "train/run/data/sources.h"

namespace difftape::run {
namespace {

/// Returns random letters, different for each file.
std::string file_text(std::uint64_t number, std::size_t size) {
  const RandomStream stream(number, "file");
  std::string text;
  for (std::uint64_t i = 0; i < size; ++i) text += static_cast<char>('a' + stream.below(i, 26));
  return text;
}

struct TextFiles : testing::Test {
  ScratchDir dir;

  TextFiles() { fs::create_directory(dir / "text"); }
  void put_files(std::uint64_t count, std::size_t size = 400) {
    for (std::uint64_t i = 0; i < count; ++i)
      put(dir / fmt::format("text/{}", i), file_text(i, size + 7 * i));
  }
  DataConfig config() const {
    return {.path = {(dir / "text").string()}, .seq_len = 16, .batch_size = 4};
  }
  static std::unique_ptr<Dataset> make(const DataConfig& config, std::uint64_t seed = 1) {
    return make_dataset(config, ModelConfig{}, seed);
  }
};

/// Returns the text of the rows.
std::vector<std::string> text_rows(const Batch& batch) {
  std::vector<std::string> rows;
  for (Index b = 0; b < batch.batch; ++b) {
    const auto first = batch.tokens.begin() + b * (batch.seq + 1);
    rows.emplace_back(first, first + batch.seq + 1);
  }
  return rows;
}

TEST_F(TextFiles, train_or_validate_whole) {
  put_files(60);
  const auto data = make(config());
  const auto info = data->info();
  std::set<std::uint64_t> train, validate;
  const auto mark = [](const Batch& batch, std::set<std::uint64_t>& files) {
    for (const std::string& row : text_rows(batch)) {
      for (std::uint64_t i = 0; i < 60; ++i)
        if (file_text(i, 400 + 7 * i).find(row) != std::string::npos) files.insert(i);
    }
  };
  for (Index step = 0; step < 700; ++step) mark(data->train_batch(step, 0), train);
  for (Index i = 0; i < data->val_batches(); ++i) mark(data->val_batch(i), validate);
  EXPECT_EQ(std::ssize(train), info["files"]);
  EXPECT_EQ(std::ssize(validate), info["val_files"]);
  std::set<std::uint64_t> named;
  for (const std::string& name : data->held_out_files()) named.insert(std::stoul(name));
  EXPECT_EQ(named, validate);
  EXPECT_EQ(train.size() + validate.size(), 60u);
  EXPECT_EQ(info["bytes"].get<Index>() + info["val_bytes"].get<Index>(), 60 * 400 + 7 * 59 * 30);
  EXPECT_NEAR(info["val_bytes"].get<double>() / info["bytes"].get<double>(), 0.05 / 0.95, 0.01);
  EXPECT_EQ(info["val_overlap"], 0);
  EXPECT_EQ(info["dropped_files"], 0);
}

TEST_F(TextFiles, are_divided_alike_in_every_run) {
  put_files(60);
  const auto found = make(config())->info();
  DataConfig other = config();
  other.seq_len = 40;
  other.batch_size = 3;
  EXPECT_EQ(make(other, 7)->info()["val_xxh3_128"], found["val_xxh3_128"]);
  EXPECT_EQ(make(other, 7)->info()["xxh3_128"], found["xxh3_128"]);
  other.val_fraction = 0.3;
  EXPECT_NE(make(other)->info()["val_xxh3_128"], found["val_xxh3_128"]);
}

TEST_F(TextFiles, that_share_more_than_30_percent_with_longer_ones_are_dropped) {
  put_files(40, 2000);
  put(dir / "text/most", file_text(3, 1000) + file_text(100, 900));
  put(dir / "text/least", file_text(4, 200) + file_text(101, 1500));
  put(dir / "text/copy", file_text(5, 2035));
  const auto info = make(config())->info();
  EXPECT_EQ(info["dropped_files"], 2);
  EXPECT_EQ(info["dropped_bytes"], 1900 + 2035);
  DataConfig all = config();
  all.val_path = {(dir / "text/least").string()};
  EXPECT_EQ(make(all)->info()["files"], 43) << "nothing is dropped with data.val_path";
  EXPECT_FALSE(make(all)->info().contains("dropped_files"));
}

TEST_F(TextFiles, too_few_or_too_large_to_hold_out_are_divided_by_blocks) {
  put_files(3, 4000);
  put(dir / "text/copy", file_text(0, 4000));
  const auto info = make(config())->info();
  EXPECT_EQ(info["files"], 3);
  EXPECT_FALSE(info.contains("val_files"));
  EXPECT_EQ(info["dropped_files"], 1);
  EXPECT_EQ(info["bytes"], 3 * 4000 + 21);
  EXPECT_NEAR(info["val_bytes"].get<double>(), 601, 1);
}

TEST_F(TextFiles, held_out_but_shorter_than_a_sequence_are_an_error) {
  put_files(60, 1);
  DataConfig longer = config();
  longer.seq_len = 1200;
  EXPECT_THAT([&] { make(longer); },
              ThrowsMessage<DataError>(testing::ContainsRegex(
                  "the text of [0-9]+ files held out by data.val_fraction has [0-9]+ bytes, but "
                  "data.seq_len 1200 needs at least 1201: one sequence of seq_len \\+ 1; give more "
                  "data\nin data.path")));
}

/// Returns the hashes of all strings of 50 bytes.
std::vector<std::size_t> strings_of(const std::string& text) {
  std::vector<std::size_t> hashes;
  for (std::size_t i = 0; i + 50 <= text.size(); ++i)
    hashes.push_back(std::hash<std::string_view>()(std::string_view(text).substr(i, 50)));
  return hashes;
}

TEST(DefaultText, is_the_eigen_headers_whose_training_and_validation_share_few_strings) {
  // Long sequences, so that few strings cross their ends.
  DataConfig longest;
  longest.seq_len = 1 << 16;
  longest.batch_size = 1;
  const auto data = make_dataset(longest, {}, 1);
  const auto info = data->info();
  EXPECT_GT(info["files"], 250);
  EXPECT_GT(info["bytes"], 5'000'000);
  EXPECT_LT(info["bytes"], 20'000'000);
  EXPECT_GT(info["val_files"], 5);
  EXPECT_GT(info["val_bytes"].get<double>() / info["bytes"].get<double>(), 0.025);
  EXPECT_GT(info["dropped_files"], 100);
  const double overlap = info["val_overlap"];
  EXPECT_LE(overlap, 0.17);

  std::vector<std::size_t> trained;
  for (Index i = 0; i < 2 * info["epoch_sequences"].get<Index>(); ++i) {
    const std::vector<std::size_t> more =
        strings_of(byte_tokenizer().decode(data->train_batch(i, 0).tokens));
    trained.insert(trained.end(), more.begin(), more.end());
  }
  std::ranges::sort(trained);
  DataConfig shorter = longest;
  shorter.seq_len = 4095;
  const auto short_ones = make_dataset(shorter, {}, 1);
  Index shared = 0, all = 0;
  for (Index i = 0; i < short_ones->val_batches(); ++i) {
    const std::string text = byte_tokenizer().decode(short_ones->val_batch(i).tokens);
    std::vector<bool> known(text.size());
    const std::vector<std::size_t> strings = strings_of(text);
    for (std::size_t at = 0; at < strings.size(); ++at) {
      if (!std::ranges::binary_search(trained, strings[at])) continue;
      for (std::size_t k = at; k < at + 50; ++k) known[k] = true;
    }
    shared += std::ranges::count(known, true);
    all += std::ssize(text);
  }
  EXPECT_NEAR(static_cast<double>(shared) / static_cast<double>(all), overlap, 0.01);
}

struct Sources : testing::Test {
  ScratchDir dir;

  Sources() {
    fs::create_directories(dir / "src/deep/.git");
    for (const char* name : {"b.txt", "a.txt", "c.md", "[x].txt", "src/z.txt", "src/deep/y.txt",
                             "src/deep/.git/object", "src/.hidden"})
      put(dir / name, std::string(name) + ";");
  }
  /// Returns the found files; they and the entries are relative to the directory.
  std::vector<std::string> find(std::vector<std::string> entries) const {
    for (std::string& entry : entries) entry = dir / entry;
    std::vector<std::string> names;
    for (const SourceFile& file : find_source_files(entries))
      names.push_back(file.path.lexically_relative(dir.path()));
    return names;
  }
};

TEST_F(Sources, a_pattern_matches_in_byte_order) {
  EXPECT_THAT(find({"?.txt"}), ElementsAre("a.txt", "b.txt"));
  EXPECT_THAT(find({"*.txt"}), ElementsAre("[x].txt", "a.txt", "b.txt"));
}

TEST_F(Sources, the_order_of_entries_does_not_matter_and_a_file_counts_once) {
  EXPECT_THAT(find({"c.md", "b.txt", "a.txt"}), ElementsAre("a.txt", "b.txt", "c.md"));
  EXPECT_THAT(find({"a.*", "src/../a.txt", "a.txt"}), ElementsAre("a.txt"));
}

TEST_F(Sources, a_directory_means_all_visible_files_below_it) {
  EXPECT_THAT(find({"src"}), ElementsAre("src/deep/y.txt", "src/z.txt"));
  EXPECT_THAT(find({"s*"}), ElementsAre("src/deep/y.txt", "src/z.txt"));
}

TEST_F(Sources, a_file_whose_name_looks_like_a_pattern_is_found) {
  EXPECT_THAT(find({"[x].txt"}), ElementsAre("[x].txt"));
}

TEST_F(Sources, belong_to_the_domain_of_their_name_or_of_the_named_folder) {
  const auto domains = [this](std::vector<std::string> entries) {
    for (std::string& entry : entries) entry = dir / entry;
    std::vector<std::string> names;
    for (const SourceFile& file : find_source_files(entries)) names.push_back(file.domain);
    return names;
  };
  EXPECT_THAT(domains({"a.txt", "c.md", "src/"}), ElementsAre("a", "c", "src", "src"));
  EXPECT_THAT(domains({"s*", "b.txt"}), ElementsAre("b", "src", "src"));
  EXPECT_THAT(domains({"src/*"}), ElementsAre("deep", "z"));
}

TEST_F(Sources, with_equal_names_are_domains_named_by_the_shortest_distinct_path) {
  for (const char* folder : {"one/en", "one/de", "two/en", "z"})
    fs::create_directories(dir / folder);
  for (const char* name : {"one/en/test.txt", "one/de/test.txt", "two/en/test.txt", "z/x.txt",
                           "z/x.md", "z/one-de-test.txt"})
    put(dir / name, std::string(name));
  const auto names = [this](std::vector<fs::path> paths) {
    for (fs::path& path : paths) path = dir / path;
    return domain_names(paths);
  };
  EXPECT_THAT(names({"one/en/test.txt", "one/de/test.txt"}), ElementsAre("en/test", "de/test"));
  EXPECT_THAT(names({"one/en/test.txt", "one/de/test.txt", "two/en/test.txt"}),
              ElementsAre("one/en/test", "de/test", "two/en/test"));
  EXPECT_THAT(names({"one/en", "two/en"}), ElementsAre("one/en", "two/en"));
  EXPECT_THAT(names({"z/x.txt", "z/x.md"}), ElementsAre("x.txt", "x.md"));
  EXPECT_THAT(names({"z/x.txt", "one/../z/x.txt"}), ElementsAre("x", "x"));
  EXPECT_EQ(domain_file_name("en/test"), "en-test");
  const std::vector<std::string> entries{dir / "one/en/test.txt", dir / "one/de"};
  EXPECT_THAT(find_source_files(entries)[0].domain, "de");
  EXPECT_THAT(find_source_files(entries)[1].domain, "test");
}

TEST_F(Sources, an_entry_without_match_is_named) {
  EXPECT_THAT(
      [&] {
        find({"a.txt", "*.tex"});
      },
      ThrowsMessage<MissingInput>((dir / "*.tex").string() + ": the pattern matches no file"));
  EXPECT_THAT([&] { find({"none.txt"}); },
              ThrowsMessage<MissingInput>((dir / "none.txt").string() + ": no such file"));
}

}  // namespace
}  // namespace difftape::run
