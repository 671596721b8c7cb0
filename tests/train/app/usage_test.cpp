// The command line: help, and errors of invalid command lines.
#include "tests/train/run/loop/tiny.h"

namespace difftape::app {
namespace {

/// Runs an invalid command line, which must not change the directory, and returns its message.
std::string usage_error(const Words& arguments) {
  const TinyProject project;
  const Outcome outcome = project.difftape(arguments);
  EXPECT_EQ(outcome.exit, 64) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  const fs::directory_iterator files(project.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 2) << "text.txt and tiny.yaml";
  return outcome.err;
}

TEST(Help, of_the_program_names_every_command_and_the_exit_codes) {
  const Outcome help = test::run({"--help"});
  EXPECT_EQ(help.exit, 0);
  EXPECT_EQ(help.err, "");
  for (const std::string command :
       {"init", "train", "sweep", "report", "runs", "diff", "plan", "config", "export", "import",
        "data", "dump-grads", "verify", "gradcheck", "doctor"})
    EXPECT_THAT(help.out, HasSubstr("\n  " + command + " "));
  EXPECT_THAT(help.out, AllOf(HasSubstr("difftape sweep configs/sweeps/quickstart.yaml"),
                              HasSubstr("64 usage; 65 bad data or checkpoint; 66 input missing"),
                              HasSubstr("86 training diverged"), HasSubstr("130/143")));
}

TEST(Help, of_all_has_a_section_per_command_with_its_arguments_and_options) {
  const std::string help = test::output(test::run({"--help-all"}));
  for (const char* section :
       {"\n\ndifftape train:\n  Train one model from a configuration\n\n  CONFIG TEXT REQUIRED ",
        "\n\ndifftape data prepare:\n  Convert text to a token file\n\n  SOURCES TEXT ",
        "\n  --eos-token-id INT ", "\n\nExit codes:\n  0 ok; "})
    EXPECT_THAT(help, HasSubstr(section));
}

TEST(Version, names_program_commit_and_precision) {
  EXPECT_THAT(test::run({"--version"}).out, MatchesRegex("difftape 0\\..*, f32, .*\n"));
  EXPECT_THAT(test::run({"--version"}, {.program = DIFFTAPE_TEST_PROGRAM_F64}).out,
              MatchesRegex("difftape 0\\..*, f64, .*\n"));
}

TEST(Usage, an_unknown_command_is_named_with_the_nearest_one) {
  EXPECT_EQ(usage_error({"trian", "tiny.yaml"}),
            "difftape: unknown command 'trian'; did you mean 'train'?\n"
            "see 'difftape --help'\n");
  EXPECT_EQ(usage_error({"config", "shwo", "tiny.yaml"}),
            "difftape: unknown command 'shwo'; did you mean 'show'?\n"
            "see 'difftape config --help'\n");
  EXPECT_EQ(usage_error({"help"}), "difftape: unknown command 'help'\nsee 'difftape --help'\n");
}

TEST(Usage, too_many_threads_are_named_as_the_cause) {
  const Outcome outcome =
      test::run({"init", "x"}, {.environment = {{"OMP_NUM_THREADS", "1000000"}}});
  EXPECT_THAT(test::error(64, outcome),
              HasSubstr("OMP_NUM_THREADS: is 1000000, but must be at most 1024"));
}

TEST(Usage, a_missing_command_lists_the_commands) {
  EXPECT_EQ(
      usage_error({}),
      "difftape: a command is missing; give one of init, train, sweep, report, runs, diff, eval, "
      "generate, export, import, data, plan, config, dump-grads, verify, gradcheck, doctor\n"
      "see 'difftape --help'\n");
  EXPECT_EQ(usage_error({"config"}),
            "difftape: a command is missing; give one of show, keys, schema\n"
            "see 'difftape config --help'\n");
}

TEST(Usage, an_option_with_an_invalid_value_is_named) {
  const auto jobs = [](const Words& more) {
    const std::string error = usage_error(joined({"sweep", "tiny.yaml"}, more));
    return error.substr(0, error.find('\n'));
  };
  EXPECT_EQ(jobs({"--jobs", "1", "--jobs", "2"}),
            "difftape: --jobs: given 2 times, but must be given once; remove all but one");
  EXPECT_EQ(jobs({"--jobs"}), "difftape: --jobs: a value is missing; give it after --jobs");
  EXPECT_EQ(jobs({"--jobs", "0"}), "difftape: --jobs: expected a number from 1 to 1024, got '0'");
  EXPECT_THAT(usage_error({"generate", "run", "--temperature", "hot"}),
              HasSubstr("--temperature: expected a number, got 'hot'"));
}

TEST(Usage, an_unknown_option_is_named) {
  EXPECT_EQ(usage_error({"--verbose"}),
            "difftape: unknown option '--verbose'\nsee 'difftape --help'\n");
  EXPECT_THAT(usage_error({"doctor", "--fast"}), HasSubstr("unknown option '--fast'"));
  EXPECT_THAT(usage_error({"train", "tiny.yaml", "--resum"}),
              HasSubstr("unknown option '--resum'; did you mean '--resume'?"));
}

TEST(Usage, a_key_given_as_an_option_is_referred_to_set) {
  const auto advice = [](const Words& words) {
    const std::string text = usage_error(joined({"train", "tiny.yaml"}, words));
    return text.substr(0, text.find('\n'));
  };
  EXPECT_EQ(advice({"--steps", "20"}),
            "difftape: unknown option '--steps'; write --set train.steps=20");
  EXPECT_EQ(advice({"--learning-rate=3e-4"}),
            "difftape: unknown option '--learning-rate=3e-4'; write --set optim.lr=3e-4");
  EXPECT_EQ(advice({"--max_iters", "--profile"}),
            "difftape: unknown option '--max_iters'; write --set train.steps=VALUE");
  EXPECT_EQ(advice({"--optim.betas", "[0.9,0.99]"}),
            "difftape: unknown option '--optim.betas'; write --set optim.betas=[0.9,0.99]");
  EXPECT_EQ(advice({"optim.lr=0.1"}),
            "difftape: unexpected argument 'optim.lr=0.1'; write --set optim.lr=0.1");
  EXPECT_EQ(advice({"--dropout", "0.1"}),
            "difftape: unknown option '--dropout'; there is no dropout; leave it out");
  EXPECT_EQ(
      advice({"--config", "a.yaml"}),
      "difftape: unknown option '--config'; CONFIG is an argument: write it without --config");
  EXPECT_THAT(advice({"--beta1", "0.9"}), HasSubstr("write --set optim.betas=VALUE"));
  for (const char* nothing : {"---", "--=3", "=5"})
    EXPECT_EQ(test::run({"train", "a.yaml", nothing}).exit, 64) << nothing;
  EXPECT_EQ(advice({"--kind", "diff_v2"}),
            "difftape: unknown option '--kind'; write --set model.attention.kind=diff_v2");
  EXPECT_EQ(advice({"--name", "mine"}), "difftape: unknown option '--name'")
      << "two keys have that name";
  EXPECT_THAT(usage_error({"report", "runs", "--steps", "3"}),
              HasSubstr("unknown option '--steps'\n"));
}

TEST(Usage, a_key_with_an_option_of_the_command_is_referred_to_it) {
  EXPECT_THAT(usage_error({"eval", "run", "--dataset", "x"}),
              HasSubstr("'--dataset'; it is data.path here: files or globs; write --data VALUE\n"));
  EXPECT_THAT(usage_error({"eval", "run", "--path", "x.txt"}), HasSubstr("; write --data x.txt\n"));
}

TEST(Usage, an_arm_given_as_an_option_is_referred_to_sweep_or_config) {
  for (const std::string command : {"train", "eval"}) {
    EXPECT_THAT(
        usage_error({command, "sweep.yaml", "--arm", "v2"}),
        HasSubstr("unknown option '--arm'; 'difftape sweep SWEEP --arms v2' trains the runs of an "
                  "arm, 'difftape config show SWEEP --arm v2 > v2.yaml' makes a configuration of "
                  "it\n"));
  }
}

TEST(Usage, missing_arguments_are_named) {
  for (const std::string command : {"train", "plan"}) {
    EXPECT_EQ(usage_error({command}),
              "difftape: CONFIG is required\nsee 'difftape " + command + " --help'\n");
  }
  EXPECT_THAT(usage_error({"sweep"}), HasSubstr("SWEEP is required"));
  EXPECT_THAT(usage_error({"report"}), HasSubstr("RUN_DIR is required"));
  EXPECT_THAT(usage_error({"config", "show"}), HasSubstr("CONFIG_OR_CKPT is required"));
  EXPECT_THAT(usage_error({"dump-grads", "tiny.yaml"}), HasSubstr("--batch is required"));
  EXPECT_THAT(usage_error({"dump-grads", "tiny.yaml", "--batch", "b.h5"}),
              HasSubstr("--out is required"));
  EXPECT_THAT(usage_error({"train", "tiny.yaml", "--out"}), HasSubstr("--out: a value is missing"));
  EXPECT_THAT(usage_error({"train", "tiny.yaml", "--set"}), HasSubstr("--set: a value is missing"));
}

TEST(Usage, an_unexpected_argument_is_named) {
  EXPECT_THAT(usage_error({"train", "tiny.yaml", "other.yaml"}),
              HasSubstr("difftape: unexpected argument 'other.yaml'\n"));
}

}  // namespace
}  // namespace difftape::app
