#include "train/system/child.h"

#include <sched.h>
#include <unistd.h>

#include <csignal>

#include "tests/support/test.h"
#include "train/system/exit.h"
#include "train/system/files.h"

namespace difftape::system {
namespace {

using Words = std::vector<std::string>;

/// Returns the output of a shell command in a child with this setup.
std::string output_of(const std::string& script, ChildSetup setup = {0, 0, 0}) {
  const File out(std::tmpfile());
  setup.in = 0;
  setup.out = setup.err = fileno(out.get());
  Child child(Words{"sh", "-c", script}, setup);
  EXPECT_EQ(child.wait().str(), "exit code 0");
  return contents_of(out.get());
}

TEST(ShellCommand, quotes_characters_that_a_shell_interprets) {
  const Words words = {"difftape", "train", "my runs/a.yaml", "--set", "run.name=it's", "", "a*b"};
  EXPECT_EQ(shell_command(words),
            "difftape train 'my runs/a.yaml' --set 'run.name=it'\\''s' '' 'a*b'");
}

TEST(Child, ends_with_an_exit_code_or_a_signal) {
  Child fails(Words{"sh", "-c", "exit 3"}, {0, 1, 2});
  EXPECT_EQ(fails.wait().exit, 3);
  EXPECT_EQ(fails.wait().str(), "exit code 3");
  Child sleeps(Words{"sleep", "100"}, {0, 1, 2});
  EXPECT_FALSE(sleeps.poll());
  sleeps.signal(SIGTERM);
  EXPECT_EQ(sleeps.wait().str(), "killed by signal 15");
  sleeps.signal(SIGKILL);  // ignored: it has ended
}

TEST(Child, is_killed_with_the_object) {
  pid_t id = 0;
  {
    const Child sleeps(Words{"sleep", "100"}, {0, 1, 2});
    id = sleeps.id();
    EXPECT_EQ(kill(id, 0), 0);
  }
  EXPECT_NE(kill(id, 0), 0);
}

TEST(Child, has_the_given_streams_environment_and_cores) {
  ChildSetup setup{0, 0, 0};
  setup.environment.emplace_back("DIFFTAPE_X", "a b");
  EXPECT_EQ(output_of("echo \"$DIFFTAPE_X\"; echo e >&2", setup), "a b\ne\n");
  cpu_set_t cores;
  ASSERT_EQ(sched_getaffinity(0, sizeof cores, &cores), 0);
  int last = 0;
  for (int core = 0; core < CPU_SETSIZE; ++core) last = CPU_ISSET(core, &cores) ? core : last;
  ChildSetup pinned{0, 0, 0};
  pinned.cores = {last};
  EXPECT_EQ(output_of("grep Cpus_allowed_list /proc/self/status", pinned),
            "Cpus_allowed_list:\t" + std::to_string(last) + "\n");
}

TEST(Child, has_a_replaced_variable_once) {
  setenv("DIFFTAPE_Y", "old", 1);
  ChildSetup setup{0, 0, 0};
  setup.environment.emplace_back("DIFFTAPE_Y", "new");
  EXPECT_EQ(output_of("env | grep ^DIFFTAPE_Y", setup), "DIFFTAPE_Y=new\n");
  unsetenv("DIFFTAPE_Y");
}

TEST(Child, apart_is_in_a_separate_process_group) {
  ChildSetup setup{0, 1, 2};
  setup.apart = true;
  const Child sleeps(Words{"sleep", "100"}, setup);
  EXPECT_EQ(getpgid(sleeps.id()), sleeps.id());
}

TEST(Child, starts_in_its_directory_and_with_its_limits) {
  ChildSetup setup{0, 0, 0};
  setup.directory = "/";
  setup.limits = {.file_size = 1 << 20, .memory = 1 << 30};
  EXPECT_EQ(output_of("pwd; ulimit -f; ulimit -v", setup), "/\n2048\n1048576\n");
  setup.limits.seconds = 1;
  setup.in = setup.out = setup.err = 0;
  Child sleeps(Words{"sleep", "100"}, setup);
  EXPECT_EQ(sleeps.wait().signal, SIGALRM);
}

TEST(Child, that_cannot_be_started_throws_missing_input) {
  EXPECT_EQ(message_of<MissingInput>([] {
              Child(Words{"no-such-program-here"}, {0, 1, 2});
            }),
            "cannot start no-such-program-here: No such file or directory");
}

TEST(LastLine, is_the_last_one_that_is_not_blank) {
  EXPECT_EQ(last_line("one\ntwo \n\n \t\n"), "two");
  EXPECT_EQ(last_line("one"), "one");
  EXPECT_EQ(last_line(" \n"), "");
}

TEST(ExitCode, of_an_error_follows_from_its_type) {
  EXPECT_EQ(exit_of(UsageError("")), system::Exit::usage);
  EXPECT_EQ(exit_of(MissingInput("")), system::Exit::missing_input);
  EXPECT_EQ(exit_of(OutputError("")), system::Exit::cannot_write);
  EXPECT_EQ(exit_of(ConfigError("")), system::Exit::config);
  EXPECT_EQ(exit_of(DataError("")), system::Exit::bad_data);
  EXPECT_EQ(exit_of(ShapeError("")), system::Exit::bad_data);
  EXPECT_EQ(exit_of(std::runtime_error("")), system::Exit::bad_data);
}

TEST(ExitCode, has_the_value_that_scripts_depend_on) {
  EXPECT_EQ(static_cast<int>(system::Exit::check_failed), 1);
  EXPECT_EQ(static_cast<int>(system::Exit::stopped_early), 75);
  EXPECT_EQ(static_cast<int>(system::Exit::config), 78);
  EXPECT_EQ(static_cast<int>(system::Exit::diverged), 86);
}

}  // namespace
}  // namespace difftape::system
