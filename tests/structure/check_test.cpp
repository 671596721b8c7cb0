// `./dev check` in a small repository whose `dev` does nothing, or fails.
#include "tests/structure/readme_lines.h"
#include "tests/train/app/program.h"

namespace difftape::test {
namespace {

struct Checks : testing::Test {
  Checks() {
    fs::create_directories(dir_ / "tests/check");
    fs::copy(kRoot / "tests/check/check.sh", dir_ / "tests/check/check.sh");
    put(dir_ / ".gitignore", "build/\n");
    git("init -q");
    write_dev("[ $1 != torture ]");
  }

  void write_dev(const std::string& body) {
    put(dir_ / "dev", "#!/bin/bash\n" + body + "\n");
    fs::permissions(dir_ / "dev", fs::perms::owner_all);
    git("add .");
    git("commit -qm 'Change dev'");
  }
  Outcome shell(const std::string& command) {
    return test::run({"-c", command}, {.directory = dir_.path(), .program = "/bin/bash"});
  }
  void git(const std::string& arguments) {
    output(shell("git -c user.name=x -c user.email=x@example.com " + arguments));
  }

  ScratchDir dir_;
};

TEST_F(Checks, print_a_result_each_and_run_again_only_after_a_failure_or_a_commit) {
  const std::string check = "tests/check/check.sh torture clang";
  const Outcome first = shell(check);
  EXPECT_EQ(first.exit, 1);
  EXPECT_THAT(first.out, HasSubstr("check: torture failed in 0 minutes"));
  EXPECT_THAT(first.out, HasSubstr("check: clang passed in 0 minutes"));
  const Outcome again = shell(check);
  EXPECT_EQ(again.exit, 1);
  EXPECT_THAT(again.out, HasSubstr("check: torture failed"));
  EXPECT_THAT(again.out, HasSubstr("check: clang passed before"));
  write_dev("true");
  EXPECT_THAT(output(shell(check)),
              AllOf(HasSubstr("torture passed in"), HasSubstr("clang passed in")));
}

TEST_F(Checks, refuse_changes_that_are_not_committed_and_unknown_names) {
  EXPECT_THAT(error(64, shell("tests/check/check.sh clangg")),
              HasSubstr("'clangg' is not a check"));
  put(dir_ / "core.cpp", "");
  EXPECT_THAT(error(64, shell("tests/check/check.sh clang")),
              AllOf(HasSubstr("commit or remove"), HasSubstr("?? core.cpp")));
}

TEST_F(Checks, that_are_interrupted_end_all_processes) {
  write_dev("trap 'exit 1' INT; sleep 60 & echo $! >build/pid; wait");
  for (const auto& [signal, status] :
       {std::pair(SIGHUP, 129), std::pair(SIGINT, 130), std::pair(SIGTERM, 143)}) {
    Process checking({"tests/check/check.sh", "torture", "clang"},
                     {.directory = dir_.path(), .program = "/bin/bash"});
    const auto running = [&] { return output(shell("cat build/pid 2>/dev/null || true")); };
    ASSERT_TRUE(becomes_true([&] { return !running().empty(); }));
    const std::string child = running();
    fs::remove(dir_ / "build/pid");
    checking.signal(signal);
    const Outcome outcome = checking.wait();
    EXPECT_EQ(outcome.exit, status);
    EXPECT_THAT(outcome.out, HasSubstr("torture interrupted"));
    EXPECT_THAT(outcome.out, Not(HasSubstr("clang")));
    const std::string alive =
        fmt::format("grep -q '^State:.[^Z]' /proc/{}/status", std::stoi(child));
    EXPECT_NE(shell(alive).exit, 0) << "a process of the check is left";
  }
}

TEST(ChecksTable, has_a_row_for_each_check) {
  const Outcome refused =
      test::run({"tests/check/check.sh", "none"}, {.directory = kRoot, .program = "/bin/bash"});
  static const std::regex row(R"(\| [^|]+ \| `\./dev (\w+)` \|)");
  std::string names;
  std::smatch match;
  for (const std::string& line : lines_of(kRoot / "docs/reproducibility.md"))
    if (std::regex_match(line, match, row)) names += " " + match[1].str();
  EXPECT_THAT(error(64, refused), HasSubstr("choose from" + names + "\n"));
}

}  // namespace
}  // namespace difftape::test
