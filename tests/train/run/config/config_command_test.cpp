#include "train/app/commands.h"

#include "tests/train/run/config/config_files.h"
#include "train/run/config/writer.h"

namespace difftape::run {
namespace {

class ConfigCommand : public ConfigFiles {
 protected:
  /// What `difftape <arguments>` prints.
  std::string run(std::vector<std::string> words) {
    words.insert(words.begin(), "difftape");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    const app::Program program{.name = "difftape",
                               .help = "",
                               .footer = "",
                               .version = "",
                               .commands = {app::config_command(context)}};
    testing::internal::CaptureStdout();
    try {
      parse_and_run(program, static_cast<int>(argv.size()), argv.data());
    } catch (...) {
      testing::internal::GetCapturedStdout();
      throw;
    }
    return testing::internal::GetCapturedStdout();
  }

  app::Context context;
};

TEST_F(ConfigCommand, show_prints_the_resolved_configuration) {
  write("a.yaml", "optim.lr: 0.25\n");
  Config expected;
  expected.optim.lr = 0.25;
  expected.optim.min_lr = 0.025;
  EXPECT_EQ(run({"config", "show", "a.yaml"}), to_yaml(expected));
  EXPECT_EQ(context.exit, system::Exit::ok);
}

TEST_F(ConfigCommand, set_takes_one_assignment_and_may_stand_anywhere) {
  write("a.yaml", "optim.lr: 0.25\n");
  Config expected;
  expected.optim.lr = 0.5;
  expected.optim.min_lr = 0.05;
  expected.optim.betas = {0.8, 0.99};
  EXPECT_EQ(
      run({"config", "show", "--set", "optim.lr=0.5", "a.yaml", "--set=optim.betas=[0.8,0.99]"}),
      to_yaml(expected));
}

TEST_F(ConfigCommand, origin_says_where_values_came_from) {
  write("a.yaml", "optim.lr: 0.25\n");
  EXPECT_THAT(run({"config", "show", "a.yaml", "--origin"}), testing::HasSubstr("# a.yaml:1\n"));
}

TEST_F(ConfigCommand, keys_and_schema_print_the_registry) {
  EXPECT_EQ(run({"config", "keys"}), describe_keys());
  EXPECT_EQ(context.exit, system::Exit::ok);
  EXPECT_EQ(run({"config", "schema"}), config_schema());
}

TEST_F(ConfigCommand, errors_are_thrown_for_main_to_print) {
  write("a.yaml", "foo: 1\n");
  EXPECT_EQ(message(system::Exit::config,
                    [&] {
                      run({"config", "show", "a.yaml"});
                    }),
            "a.yaml:1:1: error: unknown key 'foo'; 'difftape config keys' lists all keys");
  EXPECT_THROW(run({"config"}), UsageError);
  EXPECT_THROW(run({"config", "show"}), UsageError);
}

}  // namespace
}  // namespace difftape::run
