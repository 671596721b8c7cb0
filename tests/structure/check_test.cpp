// `./dev check` in a small repository whose `dev` does nothing, or fails.
#include "tests/structure/readme_lines.h"
#include "tests/train/app/program.h"

namespace difftape::test {
namespace {

struct Checks : testing::Test {
  Checks() {
    fs::create_directories(dir_ / "tests/check");
    fs::create_directory(dir_ / "docs");
    fs::copy(kRoot / "tests/check/check.sh", dir_ / "tests/check/check.sh");
    put(dir_ / "README.md",
        "| promise | command | last run |\n|---|---|---|\n| this is old | `x` | passed "
        "|\n\nEnd.\n");
    write_dev("echo '[  PASSED  ] 7 tests.'; echo 'faults: 8 kills at random'; [ $1 != torture ]");
    put(dir_ / ".gitignore", "build/\n");
    git("init -q");
    commit();
  }

  void write_dev(const std::string& body) {
    put(dir_ / "dev", "#!/bin/bash\n" + body + "\n");
    fs::permissions(dir_ / "dev", fs::perms::owner_all);
  }
  Outcome shell(const std::string& command) {
    return test::run({"-c", command}, {.directory = dir_.path(), .program = "/bin/bash"});
  }
  void git(const std::string& arguments) {
    output(shell("git -c user.name=x -c user.email=x@example.com " + arguments));
  }
  void commit() {
    git("add .gitignore dev tests");
    git("commit -qm 'Change dev' --allow-empty");
  }
  std::string table() { return contents(dir_ / "docs/checks.md"); }

  ScratchDir dir_;
};

TEST_F(Checks, write_one_row_each_and_run_again_only_after_a_failure_or_a_change) {
  const std::string check = "tests/check/check.sh clang torture";
  EXPECT_THAT(error(1, shell(check)), "");
  EXPECT_THAT(table(), testing::ContainsRegex("./dev clang.*7 tests.*passed"));
  EXPECT_THAT(table(), testing::ContainsRegex("./dev torture.*failed"));
  EXPECT_THAT(
      table(),
      HasSubstr("| `./dev soak` | memory and open files stay constant | | | | | not run |"));

  const Outcome again = shell(check);
  EXPECT_EQ(again.exit, 1);
  EXPECT_THAT(again.out, HasSubstr("clang passed before"));
  EXPECT_THAT(again.out, Not(HasSubstr("torture passed before")));

  write_dev("echo '[  PASSED  ] 8 tests.'");
  EXPECT_THAT(error(64, shell(check)), HasSubstr("commit or remove your changes first"));
  commit();
  output(shell(check));
  EXPECT_THAT(table(), testing::ContainsRegex("./dev clang.*8 tests.*passed"));
  EXPECT_THAT(table(), testing::ContainsRegex("./dev torture.*passed"));
}

TEST_F(Checks, say_what_was_checked_and_which_bound_was_missed) {
  write_dev(R"(
case $1 in
  scale)
    echo '1000 runs of a sweep finished in 230 s'
    echo 'the line of a run of 68,000 steps          0.31 s   at most    0.3  MISSED'
    echo 'its report                                 0.91 MB  at most      2  ok'
    exit 1 ;;
  package) echo 'test_deb: difftape_0.1.0_amd64.deb passed' ;;
  docs) echo 'HEADERS=core/a.h core/b.h core/a.h doxygen' ;;
esac)");
  commit();
  error(1, shell("tests/check/check.sh scale package docs"));
  for (const char* row :
       {"./dev scale.* [|] 1000 runs, missed: the line of a run of 68,000 steps [|]",
        "./dev package.* [|] difftape_0.1.0_amd64.deb [|]", "./dev docs.* [|] 2 headers [|]"})
    EXPECT_THAT(table(), testing::ContainsRegex(row));
}

TEST_F(Checks, stay_passed_if_only_other_files_change) {
  write_dev(":");
  commit();
  const auto changed = [&](const std::string& file, const char* line = "a line") {
    fs::create_directories((dir_ / file).parent_path());
    std::ofstream(dir_ / file, std::ios::app) << line << '\n';
    git("add -A");
    git("commit -qm 'Change a file'");
    return output(shell("tests/check/check.sh mutants soak test"));
  };
  changed("configs/studies/s.yaml");
  const auto passed = [](const char* check) {
    return HasSubstr(std::string(check) + " passed before");
  };
  EXPECT_THAT(changed("docs/page.md"),
              AllOf(passed("mutants"), passed("soak"), Not(passed("test"))));
  git("commit -qam 'Record the row'");
  EXPECT_THAT(output(shell("tests/check/check.sh test")), passed("test")) << "it wrote its own row";
  EXPECT_THAT(changed("configs/studies/s.yaml"),
              AllOf(passed("mutants"), passed("soak"), Not(passed("test"))));
  EXPECT_THAT(changed("train/app/main.cpp"),
              AllOf(passed("mutants"), Not(passed("soak")), Not(passed("test"))));
  EXPECT_THAT(changed("core/tensor.h", "int a;  // Is explained."),
              AllOf(Not(passed("mutants")), Not(passed("soak")), Not(passed("test"))));
  EXPECT_THAT(changed("core/tensor.h", "  // Explains the next line."),
              AllOf(passed("mutants"), passed("soak"), Not(passed("test"))));
  EXPECT_THAT(changed("tests/core/gemm_test.cpp"),
              AllOf(Not(passed("mutants")), passed("soak"), Not(passed("test"))));
  EXPECT_THAT(changed("tests/soak/soak.sh"), AllOf(Not(passed("soak")), Not(passed("test"))));
}

TEST_F(Checks, of_sources_that_change_meanwhile_leave_their_row) {
  write_dev("echo >>core.cpp");
  commit();
  EXPECT_THAT(output(shell("tests/check/check.sh clang; [ $? = 1 ]")),
              HasSubstr("clang passed, but what it tests was changed meanwhile"));
  EXPECT_FALSE(fs::exists(dir_ / "docs/checks.md"));
}

TEST_F(Checks, refuse_sources_that_git_does_not_know) {
  put(dir_ / "core.cpp", "");
  EXPECT_THAT(error(64, shell("tests/check/check.sh clang")),
              AllOf(HasSubstr("commit or remove"), HasSubstr("?? core.cpp")));
}

TEST_F(Checks, run_again_after_a_file_was_renamed_or_its_mode_changed) {
  put(dir_ / "core.cpp", "x\n");
  git("add core.cpp");
  commit();
  const auto again = [&](const std::string& change) {
    output(shell(change));
    commit();
    return output(shell("tests/check/check.sh clang"));
  };
  again("touch core.h; git add core.h");
  EXPECT_THAT(again(":"), HasSubstr("clang passed before"));
  for (const char* change :
       {"git mv core.cpp core_test.cpp", "chmod +x core_test.cpp; git add core_test.cpp"})
    EXPECT_THAT(again(change), Not(HasSubstr("clang passed before"))) << change;
}

TEST_F(Checks, at_the_same_time_write_whole_pages) {
  write_dev("true");
  commit();
  output(
      shell("for check in lint clang soak docs valgrind torture portable tsan; do"
            " tests/check/check.sh $check & done; wait"));
  const std::string rows = table();
  EXPECT_EQ(count(rows, "| passed |"), 8u) << rows;
  EXPECT_EQ(count(contents(dir_ / "README.md"), "\nEnd.\n"), 1u);
}

TEST_F(Checks, that_run_already_are_refused) {
  write_dev("[ $1 = docs ] || { touch build/begun; sleep 60; }");
  commit();
  Process checking({"tests/check/check.sh", "clang"},
                   {.directory = dir_.path(), .program = "/bin/bash"});
  ASSERT_TRUE(becomes_true([&] { return fs::exists(dir_ / "build/begun"); }));
  EXPECT_THAT(error(64, shell("tests/check/check.sh clang docs")), HasSubstr("clang runs already"));
  EXPECT_THAT(table(), testing::ContainsRegex("./dev docs.*passed"));
  checking.signal(SIGTERM);
  EXPECT_EQ(checking.wait().exit, 143);
}

TEST_F(Checks, that_cannot_be_recorded_leave_the_pages_whole) {
  write_dev("true");
  commit();
  output(shell("tests/check/check.sh clang"));
  const std::string rows = table(), readme = contents(dir_ / "README.md");
  fs::create_directory(dir_ / "build/check/README.md.new");  // where the page would be written
  EXPECT_THAT(error(74, shell("tests/check/check.sh --promises")),
              HasSubstr("README.md cannot be written and is as before"));
  fs::create_directory(dir_ / "build/check/checks.md.new");
  EXPECT_THAT(error(74, shell("tests/check/check.sh soak")),
              HasSubstr("docs/checks.md cannot be written and is as before"));
  EXPECT_EQ(table(), rows);
  EXPECT_EQ(contents(dir_ / "README.md"), readme);
}

TEST_F(Checks, that_are_interrupted_end_all_processes_and_leave_their_row) {
  write_dev("trap 'exit 1' INT; [ $1 = soak ] || { sleep 60 & echo $! >build/pid; wait; }");
  commit();
  output(shell("tests/check/check.sh soak"));
  const std::string before = table();
  for (const auto& [signal, status] :
       {std::pair(SIGHUP, 129), std::pair(SIGINT, 130), std::pair(SIGTERM, 143)}) {
    Process checking({"tests/check/check.sh", "clang", "torture"},
                     {.directory = dir_.path(), .program = "/bin/bash"});
    ASSERT_TRUE(checking.read_until("check: torture; output in"));
    const auto running = [&] { return output(shell("cat build/pid 2>/dev/null || true")); };
    ASSERT_TRUE(becomes_true([&] { return !running().empty(); }));
    const std::string child = running();
    fs::remove(dir_ / "build/pid");
    checking.signal(signal);
    const Outcome outcome = checking.wait();
    EXPECT_EQ(outcome.exit, status);
    EXPECT_THAT(outcome.out, HasSubstr("torture interrupted; its row is as before"));
    EXPECT_THAT(outcome.out, Not(HasSubstr("clang")));
    EXPECT_EQ(table(), before);
    const std::string alive =
        fmt::format("grep -q '^State:.[^Z]' /proc/{}/status", std::stoi(child));
    EXPECT_NE(shell(alive).exit, 0) << "a process of the check is left";
  }
}

TEST_F(Checks, of_a_newcomer_depend_on_the_readme_except_its_tables) {
  write_dev(":");
  git("add README.md");
  commit();
  const auto again = [&] {
    git("add README.md");
    git("commit -qm 'Change the README' --allow-empty");
    return output(shell("tests/check/check.sh newcomer soak"));
  };
  again();
  EXPECT_THAT(again(), HasSubstr("newcomer passed before")) << "with new rows of promises";
  std::ofstream(dir_ / "README.md", std::ios::app) << "Type this.\n";
  EXPECT_THAT(again(),
              AllOf(Not(HasSubstr("newcomer passed before")), HasSubstr("soak passed before")));
}

TEST_F(Checks, tell_the_promises_of_the_readme_what_ran) {
  EXPECT_THAT(error(1, shell("tests/check/check.sh clang torture")), "");
  const std::string readme = contents(dir_ / "README.md");
  EXPECT_THAT(readme,
              testing::ContainsRegex("damaged files are rejected . `./dev torture` . failed "
                                     "20[0-9-]+ .`[0-9a-f]+`., .* 8 random kills"));
  EXPECT_THAT(readme, HasSubstr("statistics | `./dev mutants` | not run |\n\nEnd.\n"));
  EXPECT_THAT(readme, Not(HasSubstr("this is old")));
}

// `tests/check/check.sh --promises` writes these files after a change of its lists.
TEST(ChecksTable, has_a_row_for_each_check_and_its_rows_are_those_of_the_promises) {
  ScratchDir dir;
  fs::create_directories(dir / "tests/check");
  fs::create_directory(dir / "docs");
  const std::vector<std::string> files{"README.md", "docs/reproducibility.md", "docs/checks.md"};
  for (const std::string& file : files) fs::copy(kRoot / file, dir / file);
  fs::copy(kRoot / "tests/check/check.sh", dir / "tests/check/check.sh");
  output(test::run({"tests/check/check.sh", "--promises"},
                   {.directory = dir.path(), .program = "/bin/bash"}));
  for (const std::string& file : files)
    EXPECT_EQ(contents(dir / file), contents(kRoot / file)) << file;
  for (const std::string& file : files)
    EXPECT_GE(count(contents(dir / file), "`./dev torture` |"), 1u) << file;
}

TEST_F(Checks, with_an_unknown_name_are_refused) {
  EXPECT_THAT(error(64, shell("tests/check/check.sh clangg")),
              HasSubstr("'clangg' is not a check"));
}

}  // namespace
}  // namespace difftape::test
