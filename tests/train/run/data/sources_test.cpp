#include "train/run/data/sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/scratch.h"

namespace difftape::run {
namespace {

namespace fs = std::filesystem;
using test::put;
using test::ScratchDir;
using testing::ElementsAre;
using testing::ThrowsMessage;

struct Sources : testing::Test {
  ScratchDir dir;

  Sources() {
    fs::create_directories(dir / "src/deep/.git");
    for (const char* name : {"b.txt", "a.txt", "c.md", "[x].txt", "src/z.txt", "src/deep/y.txt",
                             "src/deep/.git/object", "src/.hidden"}) {
      put(dir / name, std::string(name) + ";");
    }
  }
  /// Found files, relative to the directory; entries are relative to it too.
  std::vector<std::string> find(std::vector<std::string> entries) const {
    for (std::string& entry : entries) entry = dir / entry;
    std::vector<std::string> names;
    for (const SourceFile& file : find_source_files(entries)) {
      names.push_back(file.path.lexically_relative(dir.path()));
    }
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

TEST_F(Sources, a_directory_means_the_files_below_it_that_are_not_hidden) {
  EXPECT_THAT(find({"src"}), ElementsAre("src/deep/y.txt", "src/z.txt"));
  EXPECT_THAT(find({"s*"}), ElementsAre("src/deep/y.txt", "src/z.txt"));
}

TEST_F(Sources, a_file_whose_name_looks_like_a_pattern_is_found) {
  EXPECT_THAT(find({"[x].txt"}), ElementsAre("[x].txt"));
}

TEST_F(Sources, belong_to_the_domain_of_their_name_or_of_the_folder_that_was_named) {
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

TEST_F(Sources, what_matches_nothing_is_named) {
  EXPECT_THAT(
      [&] {
        find({"a.txt", "*.tex"});
      },
      ThrowsMessage<MissingInput>((dir / "*.tex").string() + ": the pattern matches no file"));
  EXPECT_THAT([&] { find({"none.txt"}); },
              ThrowsMessage<MissingInput>((dir / "none.txt").string() + ": no such file"));
}

TEST_F(Sources, a_device_is_no_text) {
  EXPECT_THAT([] { find_source_files(std::vector<std::string>{"/dev/zero"}); },
              ThrowsMessage<DataError>("/dev/zero: neither a file nor a directory"));
}

}  // namespace
}  // namespace difftape::run
