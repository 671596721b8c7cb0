// The commit that cmake/commit.cmake records for sources outside a git repository.
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

}  // namespace
}  // namespace difftape::test
