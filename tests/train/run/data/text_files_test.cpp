// Tests which files the entries of data.path name.
#include "core/random.h"
#include "tests/support/test.h"
#include "train/run/data/dataset.h"
#include "train/run/data/domains.h"
#include "train/run/data/prepare/tokenizer.h"
#include "train/run/data/sources.h"

namespace difftape::run {
namespace {

TEST(DefaultText, is_the_eigen_headers_in_blocks) {
  DataConfig config;
  config.seq_len = 256;
  config.batch_size = 8;
  const auto info = make_dataset(config, {}, 1)->info();
  EXPECT_GT(info["files"], 400);
  EXPECT_GT(info["bytes"], 5'000'000);
  EXPECT_LT(info["bytes"], 20'000'000);
  EXPECT_NEAR(info["val_bytes"].get<double>() / info["bytes"].get<double>(), 0.05, 0.002);
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
