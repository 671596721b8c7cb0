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
  const auto data = make_dataset(config, {}, 1);
  EXPECT_THAT(data->notes(), ElementsAre(StartsWith("data.path: the default text: ")));
  const auto info = data->info();
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
    for (const SourceFile& file : find_source_files(entries).files)
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
    for (const SourceFile& file : find_source_files(entries).files) names.push_back(file.domain);
    return names;
  };
  EXPECT_THAT(domains({"a.txt", "c.md", "src/"}), ElementsAre("a", "c", "src", "src"));
  EXPECT_THAT(domains({"s*", "b.txt"}), ElementsAre("b", "src", "src"));
  EXPECT_THAT(domains({"src/*"}), ElementsAre("deep", "z"));
}

TEST_F(Sources, in_several_entries_belong_to_the_nearest) {
  fs::create_directories(dir / "all/de");
  fs::create_directories(dir / "other/fr");
  for (const char* name : {"all/en.txt", "all/de/x.txt", "all/de/y.txt", "other/fr/z.txt"})
    put(dir / name, std::string(name));
  fs::create_symlink("../other/fr", dir / "all/french");
  fs::create_symlink("../other/fr/z.txt", dir / "all/linked.txt");
  std::vector<std::string> entries{"all", "all/de", "all/de/y.txt", "other/fr"};
  std::ranges::sort(entries);
  do {
    std::vector<std::string> paths, found;
    for (const std::string& entry : entries) paths.push_back(dir / entry);
    for (const SourceFile& file : find_source_files(paths).files)
      found.push_back(file.path.lexically_relative(dir.path()).string() + ": " + file.domain);
    EXPECT_THAT(found, ElementsAre("all/de/x.txt: de", "all/de/y.txt: y", "all/en.txt: all",
                                   "other/fr/z.txt: fr"));
  } while (std::ranges::next_permutation(entries).found);
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
  EXPECT_THAT(find_source_files(entries).files[0].domain, "de");
  EXPECT_THAT(find_source_files(entries).files[1].domain, "test");
}

TEST_F(Sources, two_asterisks_match_any_number_of_folders) {
  put(dir / "src/deep/w.txt", "w");
  put(dir / "src/deep/w.md", "w");
  EXPECT_THAT(find({"src/**/*.txt"}), ElementsAre("src/deep/w.txt", "src/deep/y.txt", "src/z.txt"));
  EXPECT_THAT(find({"**/w.*"}), ElementsAre("src/deep/w.md", "src/deep/w.txt"));
  EXPECT_THAT(find({"src/**/deep/**/y.txt"}), ElementsAre("src/deep/y.txt"));
  EXPECT_THAT(find({"src/**"}),
              ElementsAre("src/deep/w.md", "src/deep/w.txt", "src/deep/y.txt", "src/z.txt"));
  EXPECT_THAT(find({"src//**//w.md"}), ElementsAre("src/deep/w.md"));
  EXPECT_THAT([&] { find({"src/**/*.tex"}); },
              ThrowsMessage<MissingInput>(HasSubstr("the pattern matches no file")));
}

TEST_F(Sources, linked_folders_are_followed_once) {
  fs::create_directories(dir / "other/deep");
  put(dir / "other/deep/o.txt", "other");
  fs::create_symlink("../other", dir / "src/link");
  fs::create_symlink("../../src", dir / "other/deep/circle");
  fs::create_symlink(".", dir / "src/itself");
  fs::create_symlink("../c.md", dir / "src/file");
  EXPECT_THAT(find({"src"}),
              ElementsAre("src/deep/y.txt", "src/file", "src/link/deep/o.txt", "src/z.txt"));
  EXPECT_THAT(find({"src/**/o.txt"}), ElementsAre("src/link/deep/o.txt"));
}

TEST_F(Sources, links_that_lead_nowhere_are_named) {
  fs::create_symlink("nowhere", dir / "src/gone");
  EXPECT_THAT(find({"src"}), ElementsAre("src/deep/y.txt", "src/z.txt"));
  const std::vector<std::string> folder{dir / "src"};
  // By hand: "src/z.txt;" has 10 bytes, "src/deep/y.txt;" 15, and the hidden "src/.hidden;" 12 and
  // "src/deep/.git/object;" 21.
  EXPECT_EQ(find_source_files(folder).note(),
            "2 of 4 files, 25 of 58 bytes; left out: 2 hidden; 1 link that leads nowhere: " +
                (dir / "src/gone").string());
  const std::vector<std::string> pattern{dir / "src/**/*"};
  EXPECT_EQ(find_source_files(pattern).files.size(), 2U);
  EXPECT_THAT(find_source_files(pattern).note(), HasSubstr("1 link that leads nowhere: "));
  for (const char* entry : {"src/gone", "src/g*"}) {
    EXPECT_THAT(
        [&] { find({entry}); },
        ThrowsMessage<MissingInput>((dir / "src/gone").string() +
                                    ": is a link to nowhere, which does not exist; mend it"))
        << entry;
  }
}

TEST_F(Sources, files_beside_tokens_count_only_if_named) {
  fs::create_directory(dir / "d");
  for (const char* name : {"d/c.bin", "d/c.bin.json", "d/c.bin.model", "d/other.json"})
    put(dir / name, std::string(name));
  EXPECT_THAT(find({"d"}), ElementsAre("d/c.bin", "d/other.json"));
  EXPECT_THAT(find({"d/*"}), ElementsAre("d/c.bin", "d/other.json"));
  EXPECT_THAT(find({"d/c.bin.json"}), ElementsAre("d/c.bin.json"));
  // The files that `data prepare` leaves after SIGKILL.
  for (const char* name : {"d/x.bin.tmp", "d/y.h5.tmp", "d/c.bin.model.tmp", "d/x.bin.json.tmp"})
    put(dir / name, std::string(name));
  put(dir / "d/notes.tmp", "of the user");
  for (const char* entry : {"d", "d/*"})
    EXPECT_THAT(find({entry}), ElementsAre("d/c.bin", "d/notes.tmp", "d/other.json")) << entry;
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
