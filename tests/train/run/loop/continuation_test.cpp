// With which configurations a run goes on.
#include "train/run/loop/continuation.h"

#include "tests/train/run/loop/tiny.h"
#include "train/run/records/run_files.h"

namespace difftape::run {
namespace {

namespace fs = std::filesystem;
using test::TinyProject;

TEST(OtherRun, is_one_that_differs_in_what_changes_a_result) {
  const TinyProject project;
  fs::create_directory(project / "run");
  test::put(project / "run/config.yaml", to_yaml(project.config));
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
              testing::EndsWith("nowhere/config.yaml: No such file or directory"));
}

TEST(LongerRun, goes_on_where_every_step_done_would_have_been_the_same) {
  Config made;
  made.train.steps = 100;
  made.optim.schedule = ScheduleKind::constant;
  const auto why = [&](Index done, const std::function<void(Config&)>& change) {
    Config wanted = made;
    change(wanted);
    return why_not_continued(made, wanted, done);
  };
  const auto longer = [](Config& c) { c.train.steps = 200; };
  EXPECT_EQ(why(100, longer), "");
  EXPECT_EQ(why(50, [](Config& c) { c.train.checkpoint_interval = 7, c.train.keep_last = 2; }), "");
  EXPECT_EQ(why(100, [](Config& c) { c.train.steps = 99; }), "train.steps is 100, not 99");
  EXPECT_EQ(why(0, [](Config& c) { c.optim.lr = 0.5, c.run.seed = 9; }),
            "run.seed is 1, not 9; optim.lr is 0.001, not 0.5");
  EXPECT_EQ(why(100, [](Config& c) { c.train.steps = 5000; }), "");
  made.train.gradient_ramp = 2;
  EXPECT_EQ(why(50, longer),
            "train.steps is 100, not 200: train.gradient_ramp is 2, which another number of steps "
            "stretches");
  made.train.gradient_ramp = 1;
  made.optim.schedule = ScheduleKind::wsd;
  made.optim.decay_fraction = 0.2;
  EXPECT_EQ(why(80, longer), "") << "its decay has not begun";
  EXPECT_THAT(why(90, longer), testing::HasSubstr("the learning rate of step"));
}

TEST(LongerRun, has_the_steps_of_one_that_was_made_so_long) {
  TinyProject project;
  project.config.optim.schedule = ScheduleKind::constant;
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  project.config.train.steps = 20;
  ASSERT_EQ(project.train("run", true), system::Exit::ok);
  ASSERT_EQ(project.train("whole"), system::Exit::ok);
  const auto losses = [&](const char* run) {
    std::vector<double> found;
    for (const auto& line : test::metrics_lines(project / run)) found.push_back(line["train/loss"]);
    return found;
  };
  EXPECT_EQ(losses("run"), losses("whole"));
  EXPECT_EQ(config_of_run(project / "run").train.steps, 20);
  const auto env = read_env(project / "run");
  EXPECT_EQ(env["continued"][0]["steps_before"], 12);
}

TEST(SameRun, goes_on_with_other_activation_checkpointing_with_and_without_a_checkpoint) {
  TinyProject project;
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  const std::string measured = test::measured(project / "run");
  project.config.train.activation_checkpointing = ActivationCheckpointing::blocks;
  EXPECT_EQ(project.train("run", true), system::Exit::ok);
  EXPECT_EQ(test::measured(project / "run"), measured);
  fs::remove_all(project / "run/checkpoints");
  EXPECT_EQ(project.train("run", true), system::Exit::ok) << "from step 0";
  EXPECT_EQ(test::measured(project / "run"), measured);
}

TEST(SameRun, says_what_it_goes_on_with_where_that_decides_no_result) {
  TinyProject project;
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  project.config.log.tensorboard = true;
  project.config.train.keep_last = 3;
  ASSERT_EQ(project.train("run", true), system::Exit::ok);
  EXPECT_TRUE(config_of_run(project / "run").log.tensorboard);
  const auto env = read_env(project / "run");
  EXPECT_EQ(config_of_run(project / "run").train.keep_last, 3);
  EXPECT_EQ(env["continued"].size(), 1U);
  ASSERT_EQ(project.train("run", true), system::Exit::ok);
  EXPECT_EQ(read_env(project / "run")["continued"].size(), 1U) << "nothing is new";
}

TEST(SameRun, says_it_once_if_it_was_killed_before_it_had_its_new_configuration) {
  TinyProject project;
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  const std::string made = test::contents(project / "run/config.yaml");
  project.config.train.keep_last = 3;
  ASSERT_EQ(project.train("run", true), system::Exit::ok);
  test::put(project / "run/config.yaml", made);  // env.json is written first
  ASSERT_EQ(project.train("run", true), system::Exit::ok);
  EXPECT_EQ(read_env(project / "run")["continued"].size(), 1U);
  EXPECT_EQ(config_of_run(project / "run").train.keep_last, 3);
}

}  // namespace
}  // namespace difftape::run
