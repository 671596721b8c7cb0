// Runs that go on from an earlier checkpoint, in a directory of their own.
#include "tests/train/run/loop/tiny.h"
#include "train/run/loop/continuation.h"
#include "train/run/records/run_files.h"

namespace difftape::run {
namespace {

namespace fs = std::filesystem;
using test::contents;
using test::Outcome;
using testing::HasSubstr;

/// A finished run of 20 steps, whose learning rate falls over the last ten.
class Branch : public testing::Test {
 protected:
  Branch() {
    project.config.optim.schedule = ScheduleKind::wsd;
    project.config.optim.decay_fraction = 0.5;
    project.config.train.steps = 20;
    project.config.train.checkpoint_interval = 8;
    project.config.log.spike_rule = stats::SpikeDefinition::olmo_core;
    project.save();
    EXPECT_EQ(project.train("run"), system::Exit::ok);
  }

  test::TinyProject project;
};

TEST_F(Branch, is_what_the_refusal_of_a_longer_run_says_and_has_the_bits_of_one_made_so_long) {
  const std::vector<std::string> longer{"--set", "train.steps=40"};
  const Outcome refused = project.difftape({"train", "run", "--resume", longer[0], longer[1]});
  EXPECT_EQ(refused.exit, 78);
  EXPECT_THAT(refused.err,
              HasSubstr("its checkpoint of step 8 can go on so, in a directory of its own: "
                        "difftape train run --resume=run/checkpoints/step-00000008.h5 "
                        "--set train.steps=40 --out DIR\n"));
  const std::string before = test::measured(project / "run"), checkpoint = "step-00000008.h5";
  const Outcome branch = project.difftape({"train", "run", "--resume=run/checkpoints/" + checkpoint,
                                           longer[0], longer[1], "--out", "more/longer"});
  ASSERT_EQ(branch.exit, 0) << branch.err;
  EXPECT_THAT(branch.out, HasSubstr("continues after step 8 of 40\n"
                                    "the steps before are those of run/checkpoints/" +
                                    checkpoint));
  EXPECT_EQ(test::measured(project / "run"), before);
  EXPECT_EQ(read_status(project / "run").step, 20);

  project.config.train.steps = 40;
  ASSERT_EQ(project.train("whole"), system::Exit::ok);
  const auto losses = [&](const char* run) {
    std::vector<double> found;
    for (const auto& line : test::metrics_lines(project / run)) found.push_back(line["train/loss"]);
    return found;
  };
  EXPECT_EQ(losses("more/longer"), losses("whole"));
  EXPECT_TRUE(test::last_checkpoint(project / "more/longer") ==
              test::last_checkpoint(project / "whole"));
  EXPECT_EQ(read_env(project / "more/longer")["continued"][0]["step"], 8);
}

TEST_F(Branch, needs_a_free_directory_and_a_checkpoint_of_a_run_that_can_go_on_so) {
  const fs::path early = project / "run/checkpoints/step-00000008.h5";
  const auto branch = [&](std::vector<std::string> more) {
    std::vector<std::string> command{"train", "run", "--set", "train.steps=40"};
    command.insert(command.end(), more.begin(), more.end());
    return project.difftape(command);
  };
  const Outcome nowhere = branch({"--resume=" + early.string()});
  EXPECT_EQ(nowhere.exit, 64);
  EXPECT_THAT(nowhere.err, HasSubstr("say where with --out"));
  EXPECT_EQ(branch({"--resume=" + early.string(), "--out", "run"}).exit, 74);
  EXPECT_EQ(branch({"--resume=run/checkpoints/latest", "--out", "new"}).exit, 78);
  EXPECT_EQ(branch({"--resume=run/checkpoints/none.h5", "--out", "new"}).exit, 66);
  fs::copy(early, project / "alone.h5");
  EXPECT_EQ(branch({"--resume=alone.h5", "--out", "new"}).exit, 66) << "without its run";
  EXPECT_FALSE(fs::exists(project / "new"));
  EXPECT_EQ(branch({"--resume=" + early.string(), "--out", "auto"}).exit, 0);
  EXPECT_EQ(read_status(project / "run-2").step, 40);
}

}  // namespace
}  // namespace difftape::run
