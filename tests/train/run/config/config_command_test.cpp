#include "train/app/commands.h"

#include "tests/train/run/config/config_files.h"
#include "train/run/config/sweep_settings.h"
#include "train/run/config/writer.h"

namespace difftape::run {
namespace {

class ConfigCommand : public ConfigFiles {
 protected:
  /// Returns the output of `difftape <arguments>`.
  std::string run(const std::vector<std::string>& words) {
    std::vector<const char*> argv{"difftape"};
    for (const std::string& word : words) argv.push_back(word.c_str());
    const auto program = app::make_program("difftape");
    config_command(*program, context);
    testing::internal::CaptureStdout();
    try {
      app::parse_and_run(*program, static_cast<int>(argv.size()), argv.data());
    } catch (...) {
      testing::internal::GetCapturedStdout();
      throw;
    }
    return testing::internal::GetCapturedStdout();
  }

  app::Context context;
};

TEST_F(ConfigCommand, set_takes_one_assignment_and_may_stand_anywhere) {
  write("a.yaml", "optim.lr: 0.25\n");
  Config expected;
  expected.optim.lr = 0.5;
  expected.optim.betas = {0.8, 0.99};
  EXPECT_EQ(
      run({"config", "show", "--set", "optim.lr=0.5", "a.yaml", "--set=optim.betas=[0.8,0.99]"}),
      to_yaml(expected));
}

TEST_F(ConfigCommand, origin_shows_the_source_of_each_value) {
  write("a.yaml", "optim.lr: 0.25\n");
  EXPECT_THAT(run({"config", "show", "a.yaml", "--origin"}), HasSubstr("# a.yaml:1\n"));
}

TEST_F(ConfigCommand, keys_prints_one_line_per_key_with_type_default_range_unit_and_sentence) {
  const std::string text = run({"config", "keys"});
  EXPECT_EQ(context.exit, system::Exit::ok);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'),
            static_cast<long>(fields().size() + sweep_fields().size()) + 1);
  EXPECT_THAT(text, StartsWith("KEY "));
  for (const char* line :
       {"model.num_layers +integer +4 +in .1, 1024. +layers +Number of transformer blocks.\n",
        "optim.betas +list of 2 numbers +.0.9, 0.95. +in .0, 1. +- +AdamW",
        "data.path +list of strings +.. +any ", "sweep.seeds +list of integers +.. +>= 0 +- +Seed",
        "sweep.lr +list of numbers +- +> 0 +- +Values",
        "model.init.projection_std +number or word +preset +preset . fan_in . > 0 +- +Standard",
        "sweep.arms +settings by arm +- +any +- +Settings"})
    EXPECT_THAT(text, testing::ContainsRegex(line));
}

TEST_F(ConfigCommand, schema_prints_the_schema_of_the_registry) {
  EXPECT_EQ(run({"config", "schema"}), config_schema());
}

TEST_F(ConfigCommand, keys_takes_a_prefix_and_suggests_the_nearest_one) {
  const std::string text = run({"config", "keys", "optim.w"});
  EXPECT_THAT(text, HasSubstr("optim.warmup_steps"));
  EXPECT_THAT(text, HasSubstr("optim.weight_decay"));
  EXPECT_EQ(std::ranges::count(text, '\n'), 3);
  const auto refused = [&](const std::string& prefix) {
    return message(system::Exit::usage, [&] { run({"config", "keys", prefix}); });
  };
  EXPECT_EQ(refused("n_embd"),
            "config keys: no key begins with 'n_embd'; it is model.d_model here");
  EXPECT_EQ(refused("warmup_step"),
            "config keys: no key begins with 'warmup_step'; did you mean 'optim.warmup_steps'?");
}

TEST_F(ConfigCommand, keys_fit_the_width_in_the_variable_columns) {
  for (const std::size_t width : {40, 80, 120}) {
    setenv("COLUMNS", std::to_string(width).c_str(), 1);
    const std::string text = run({"config", "keys"});
    unsetenv("COLUMNS");
    std::istringstream lines(text);
    int count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
      const bool breaks = line.find_last_of(' ') > 4 && line.find_last_of(' ') != line.npos;
      EXPECT_TRUE(line.size() <= width || line[0] != ' ' || !breaks) << line;
    }
    EXPECT_GT(count, 200);
    EXPECT_THAT(text, HasSubstr("\noptim.warmup_steps: 5%\n    integer or fraction"));
  }
}

TEST_F(ConfigCommand, json_is_printed_for_scripts) {
  const auto keys = nlohmann::json::parse(run({"config", "keys", "optim.warmup", "--json"}));
  ASSERT_EQ(keys.size(), 1u);
  EXPECT_EQ(keys[0]["key"], "optim.warmup_steps");
  EXPECT_EQ(keys[0]["default"], "5%");
  EXPECT_EQ(keys[0]["unit"], "steps");
  write("a.yaml", "optim: {lr: 0.25, betas: [0.5, 0.75]}\n");
  const auto shown = nlohmann::json::parse(run({"config", "show", "a.yaml", "--json"}));
  EXPECT_EQ(shown["optim"]["lr"], 0.25);
  EXPECT_EQ(shown["optim"]["betas"], (std::vector{0.5, 0.75}));
  EXPECT_EQ(shown["model"]["attention"]["kind"], "softmax");
  EXPECT_EQ(shown.size(), 6u);
}

TEST_F(ConfigCommand, show_takes_an_arm_or_a_run_of_a_sweep) {
  write("s.yaml",
        "sweep: {lr: [0.01, 0.1], arms: {plain: {}, v2: {model.attention.kind: diff_v2}}}\n");
  const study::SweepConfig all = study::load_sweep("s.yaml");
  EXPECT_EQ(run({"config", "show", "s.yaml", "--arm", "v2"}), to_yaml(all.runs[1].config()));
  EXPECT_EQ(run({"config", "show", "s.yaml", "--arm", "plain-lr1e-01"}),
            to_yaml(all.runs[2].config()));
  const auto refused = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"config", "show"});
    return message(system::Exit::usage, [&] { run(words); });
  };
  EXPECT_EQ(refused({"s.yaml"}), "s.yaml is a sweep; choose an arm with --arm: plain, v2");
  EXPECT_EQ(refused({"s.yaml", "--arm", "v1"}),
            "--arm: 'v1' is not an arm of this sweep (plain, v2); did you mean 'v2'?");
  write("a.yaml", "");
  EXPECT_EQ(refused({"a.yaml", "--arm", "v2"}), "--arm: a.yaml is not a sweep; remove --arm");
  write("one.yaml", "sweep: {seeds: [7, 8]}\n");
  EXPECT_THAT(run({"config", "show", "one.yaml"}), HasSubstr("seed: 7\n"));
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
