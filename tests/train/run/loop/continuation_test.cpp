// Tests which configuration changes a resumed run accepts.
#include "train/run/loop/continuation.h"

#include "tests/train/run/loop/tiny.h"
#include "train/run/loop/step.h"
#include "train/run/loop/train_state.h"
#include "train/run/records/run_files.h"

namespace difftape::run {
namespace {

TEST(OtherRun, differs_in_a_key_that_changes_a_result) {
  const TinyProject project;
  fs::create_directory(project / "run");
  put(project / "run/config.yaml", to_yaml(project.config));
  const auto why = [&](const std::function<void(Config&)>& change) {
    Config wanted = project.config;
    change(wanted);
    return why_other_run(project / "run", wanted);
  };
  EXPECT_EQ(why([](Config& c) {
              c.run.out = "elsewhere";
              c.run.claims = "0123456789abcdef";
              c.train.activation_checkpointing = ActivationCheckpointing::blocks;
              c.train.keep_last = 2;
            }),
            "");
  EXPECT_EQ(why([](Config& c) { c.run.seed = 7; }), "run.seed is 1 there, not 7");
  EXPECT_EQ(why([](Config& c) { c.run.name = "another"; }), "run.name is tiny there, not another");
  EXPECT_EQ(why([](Config& c) {
              c.optim.lr = 0.5;
              c.train.steps = 99;
            }),
            "optim.lr is 0.01 there, not 0.5; train.steps is 12 there, not 99");
  EXPECT_NE(why([](Config& c) { c.log.diagnostics_interval += 1; }), "");
  EXPECT_THAT(why_other_run(project / "nowhere", project.config),
              EndsWith("nowhere/config.yaml: No such file or directory"));
}

TEST(LongerRun, resumes_under_a_constant_schedule) {
  Config made;
  made.train.steps = 100;
  made.optim.schedule = ScheduleKind::constant;
  const auto why = [&](const std::function<void(Config&)>& change) {
    Config wanted = made;
    change(wanted);
    return why_not_continued(made, wanted);
  };
  const auto longer = [](Config& c) { c.train.steps = 200; };
  EXPECT_EQ(why(longer), "");
  EXPECT_EQ(why([](Config& c) { c.train.checkpoint_interval = 7, c.train.keep_last = 2; }), "");
  EXPECT_EQ(why([](Config& c) { c.train.steps = 99; }), "train.steps is 100, not 99");
  EXPECT_EQ(why([](Config& c) { c.optim.lr = 0.5, c.run.seed = 9; }),
            "run.seed is 1, not 9; optim.lr is 0.001, not 0.5");
  made.train.gradient_ramp = 2;
  EXPECT_EQ(why(longer), "train.steps is 100, not 200") << "the ramp depends on the steps";
  made.train.gradient_ramp = 1;
  made.optim.schedule = ScheduleKind::wsd;
  EXPECT_EQ(why(longer), "train.steps is 100, not 200");
}

TEST(LongerRun, equals_a_run_of_this_length) {
  TinyProject project;
  project.config.optim.schedule = ScheduleKind::constant;
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  project.config.train.steps = 20;
  ASSERT_EQ(project.train("run", true), system::Exit::ok);
  ASSERT_EQ(project.train("whole"), system::Exit::ok);
  EXPECT_EQ(test::losses(project / "run"), test::losses(project / "whole"));
  EXPECT_EQ(config_of_run(project / "run").train.steps, 20);
}

TEST(LongerRun, with_a_percentage_of_its_steps_is_told_the_command_that_keeps_the_first_value) {
  TinyProject project;
  put(project / "mine.yaml", "base: tiny.yaml\noptim: {schedule: constant, warmup_steps: 25%}\n");
  const std::vector<std::string> mine{"train", "mine.yaml", "--out", "a run"};
  test::output(project.difftape(mine));
  EXPECT_THAT(
      test::error(78, project.difftape(joined(mine, {"--set", "train.steps=20", "--resume"}))),
      AllOf(HasSubstr("optim.warmup_steps is 3, not 5; "),
            HasSubstr("; to keep the configuration of the run: difftape train 'a run' --resume "
                      "--set train.steps=20; to use another configuration, ")));
  test::output(project.difftape({"train", "a run", "--resume", "--set", "train.steps=20"}));
  EXPECT_EQ(read_status(project / "a run").step, 20);
}

TEST(SameRun, resumes_with_other_activation_checkpointing) {
  TinyProject project;
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  const std::string before = measured(project / "run");
  project.config.train.activation_checkpointing = ActivationCheckpointing::blocks;
  EXPECT_EQ(project.train("run", true), system::Exit::ok);
  EXPECT_EQ(measured(project / "run"), before);
  fs::remove_all(project / "run/checkpoints");
  EXPECT_EQ(project.train("run", true), system::Exit::ok) << "from step 0";
  EXPECT_EQ(measured(project / "run"), before);
}

TEST(SameRun, records_changes_of_keys_that_do_not_affect_results) {
  TinyProject project;
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  project.config.log.tensorboard = true;
  project.config.train.keep_last = 3;
  ASSERT_EQ(project.train("run", true), system::Exit::ok);
  EXPECT_TRUE(config_of_run(project / "run").log.tensorboard);
  EXPECT_EQ(config_of_run(project / "run").train.keep_last, 3);
}

struct InitFrom : testing::Test {
  InitFrom() { EXPECT_EQ(project.train("old"), system::Exit::ok); }

  TinyProject project;
};

TEST_F(InitFrom, starts_from_the_weights_of_the_other_run) {
  EXPECT_THAT(test::output(project.difftape({"train", "tiny.yaml", "--init-from", "old", "--out",
                                             "new", "--set", "optim.lr=0.005"})),
              HasSubstr("starting with the weights of "));
  const auto env = read_env(project / "new");
  const fs::path checkpoint = project / "old/checkpoints/step-00000012.h5";
  EXPECT_EQ(env["init_from"]["checkpoint"], checkpoint.string());
  EXPECT_EQ(env["init_from"]["step"], 12);
  EXPECT_EQ(env["init_from"]["xxh3_128"], verify_checksum_header(checkpoint));
  EXPECT_EQ(config_of_run(project / "new").train.init_from, (project / "old").string());

  project.config.optim.lr = 0.005;
  TrainState by_hand(project.config);
  Checkpoint(find_checkpoint(project / "old")).load(by_hand.model.parameters(), nullptr);
  for (const double loss : test::losses(project / "new")) EXPECT_EQ(train_step(by_hand).loss, loss);
}

TEST_F(InitFrom, trains_on_other_data_as_another_model_of_the_same_shape) {
  put(project / "other.txt", std::string(4000, 'x') + test::tiny_text());
  project.config.data.path = {(project / "other.txt").string()};
  project.config.train.init_from = (project / "old/checkpoints").string();
  project.config.model.attention.softmax_denominator = SoftmaxDenominator::softmax1;
  ASSERT_EQ(project.train("new"), system::Exit::ok);
  TrainState by_hand(project.config);
  Checkpoint(find_checkpoint(project / "old")).load(by_hand.model.parameters(), nullptr);
  EXPECT_EQ(test::losses(project / "new").front(), train_step(by_hand).loss);
}

TEST_F(InitFrom, keeps_train_init_from_when_resumed) {
  ASSERT_EQ(project.train("other"), system::Exit::ok);
  std::vector<std::string> words{"train", "tiny.yaml", "--init-from", "old", "--out", "new"};
  ASSERT_EQ(project.difftape(words).exit, 0);
  words[3] = "other";
  words.insert(words.end(), {"--set", "train.steps=20", "--resume"});
  EXPECT_THAT(test::error(78, project.difftape(words)),
              HasSubstr("train.init_from is " + (project / "old").string() + ", not " +
                        (project / "other").string()));
}

TEST_F(InitFrom, resumes_before_its_first_checkpoint_only_with_the_same_weights) {
  project.config.train.init_from = (project / "old").string();
  ASSERT_EQ(project.train("new"), system::Exit::ok);
  const std::string before = measured(project / "new");
  fs::remove_all(project / "new/checkpoints");
  ASSERT_EQ(project.train("new", true), system::Exit::ok);
  EXPECT_EQ(measured(project / "new"), before);
  fs::remove_all(project / "new/checkpoints");
  fs::copy_file(project / "old/checkpoints/step-00000012.h5", project / "kept.h5");
  fs::remove_all(project / "old");
  project.config.train.init_from.clear();
  project.config.run.seed = 2;
  ASSERT_EQ(project.train("old"), system::Exit::ok);
  project.config.train.init_from = (project / "old").string();
  project.config.run.seed = 1;
  EXPECT_THROW(project.train("new", true), DataError);
}

TEST_F(InitFrom, needs_the_old_run_only_until_its_first_checkpoint) {
  project.config.train.init_from = (project / "old").string();
  ASSERT_EQ(project.train("new"), system::Exit::ok);
  fs::remove_all(project / "old");
  EXPECT_EQ(project.train("new", true), system::Exit::ok);
}

TEST_F(InitFrom, of_missing_or_mismatched_weights_creates_no_run) {
  const auto error = [&](const std::vector<std::string>& arguments, int exit) {
    const std::string outcome = test::error(
        exit, project.difftape(joined({"train", "tiny.yaml", "--out", "new"}, arguments)));
    EXPECT_FALSE(fs::exists(project / "new"));
    return outcome;
  };
  EXPECT_THAT(error({"--init-from", "gone"}, 66),
              AllOf(HasSubstr("no checkpoint found"), HasSubstr("in train.init_from")));
  EXPECT_THAT(error({"--init-from", "old", "--set", "model.d_ff=32"}, 65),
              HasSubstr("does not fit the model: "));
  EXPECT_THAT(error({"--init-from", ""}, 64), HasSubstr("--init-from: expected a value"));
  EXPECT_THAT(error({"--init-from", "old", "--set", "train.init_from=old"}, 64),
              HasSubstr("exclude each other"));
  EXPECT_THAT(error({"--init-from", "text.txt"}, 65), HasSubstr("is not a difftape checkpoint"));
}

}  // namespace
}  // namespace difftape::run
