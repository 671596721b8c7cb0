// The commit that cmake/commit.cmake records for sources outside a git repository, and the version
// and date of a release.
#include <regex>

#include "tests/train/app/program.h"

namespace difftape::test {
namespace {

const fs::path kScript = fs::path(DIFFTAPE_TEST_SOURCE_DIR) / "cmake/commit.cmake";

/// The header that is written for sources whose archived_commit.txt holds a text.
std::string header_of(const std::string& archived) {
  const ScratchDir dir;
  fs::create_directories(dir / "cmake");
  put(dir / "cmake/archived_commit.txt", archived);
  const Outcome outcome = run({"-DSOURCE_DIR=" + dir.path().string(),
                               "-DBINARY_DIR=" + (dir / "build").string(), "-P", kScript.string()},
                              {.program = "/usr/bin/cmake"});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  return contents(dir / "build/generated/commit.h");
}

TEST(Commit, of_an_archive_is_what_git_wrote_into_it) {
  EXPECT_THAT(header_of("eba11c6\n"), HasSubstr("#define DIFFTAPE_COMMIT \"eba11c6\"\n"));
}

TEST(Commit, of_sources_outside_an_archive_is_unknown) {  // the mark that git replaces is there
  EXPECT_THAT(header_of("$Format:%h$\n"), HasSubstr("#define DIFFTAPE_COMMIT \"unknown\"\n"));
}

/// Returns the groups of the first match in a file of the root, each after a space.
std::string groups_in(const char* file, const std::string& pattern) {
  const std::string text = contents(fs::path(DIFFTAPE_TEST_SOURCE_DIR) / file);
  std::smatch found;
  if (!std::regex_search(text, found, std::regex(pattern, std::regex::multiline))) return "none";
  std::string groups;
  for (std::size_t i = 1; i < found.size(); ++i) groups += " " + found[i].str();
  return groups;
}

TEST(Release, has_the_same_version_and_date_everywhere) {
  const std::string latest = groups_in("CHANGELOG.md", R"(^## \[([0-9.]+)\] - ([0-9-]+)$)");
  EXPECT_EQ(groups_in("CITATION.cff", R"(^version: (.*)\ndate-released: (.*)$)"), latest);
  const std::string version =
      groups_in("CMakeLists.txt", R"(project\(difftape VERSION ([0-9.]+) )");
  EXPECT_THAT(latest, testing::StartsWith(version + " "));
  EXPECT_THAT(run({"--version"}).out, testing::StartsWith("difftape" + version + " "));
}

}  // namespace
}  // namespace difftape::test
