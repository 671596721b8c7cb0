// The positive control of a gradient norm that grows late: train.gradient_ramp.
#include "tests/train/run/loop/tiny.h"
#include "train/stats/descriptive.h"
#include "train/study/compare/run_record.h"

namespace difftape::run {
namespace {

using test::metrics_lines;
using test::TinyProject;

TEST(GradientRamp, is_one_up_to_half_of_the_steps_and_reaches_its_number_on_a_line) {
  const TrainConfig train{.steps = 100, .gradient_ramp = 3};
  EXPECT_EQ(gradient_ramp_at(train, 1), 1);
  EXPECT_EQ(gradient_ramp_at(train, 50), 1);
  EXPECT_DOUBLE_EQ(gradient_ramp_at(train, 75), 2);
  EXPECT_DOUBLE_EQ(gradient_ramp_at(train, 100), 3);
  EXPECT_EQ(gradient_ramp_at({.steps = 100}, 100), 1);
}

TEST(GradientRamp, multiplies_the_gradient_and_not_the_loss_that_is_logged) {
  TinyProject project;
  project.config.optim.max_grad_norm = 0;
  ASSERT_EQ(project.train("plain"), system::Exit::ok);
  project.config.train.gradient_ramp = 2;
  ASSERT_EQ(project.train("ramp"), system::Exit::ok);
  const auto plain = metrics_lines(project / "plain"), ramp = metrics_lines(project / "ramp");
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(plain[i]["train/loss"], ramp[i]["train/loss"]);
    EXPECT_EQ(plain[i]["optim/grad_norm"], ramp[i]["optim/grad_norm"]);
  }
  // Step 7 still begins with the same weights.
  EXPECT_EQ(plain[6]["train/loss"], ramp[6]["train/loss"]);
  EXPECT_NEAR(ramp[6]["optim/grad_norm"].get<double>() / plain[6]["optim/grad_norm"].get<double>(),
              1 + 2.0 / 12, 1e-6);
}

TEST(GradientRamp, is_found_by_the_growth_of_the_gradient_norm_and_no_ramp_is_not) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    TinyProject project;
    project.config.run.seed = seed;
    project.config.model.init.preset = InitPreset::lecun;
    project.config.optim.weight_decay = 1e-4;
    project.config.optim.independent_weight_decay = true;
    project.config.data.batch_size = 8;
    project.config.train.steps = 400;
    project.config.train.eval_interval = 0;
    project.config.optim.schedule = ScheduleKind::wsd;
    project.config.optim.decay_fraction = 0.2;
    const auto growth_of = [&](const std::string& out, double ramp) {
      project.config.train.gradient_ramp = ramp;
      EXPECT_EQ(project.train(out), system::Exit::ok);
      const study::RunRecord run = study::load_run(project / out);
      return std::pair(run.number("grad_norm_growth_before_decay"), run.number("val_loss"));
    };
    const auto [plain, loss] = growth_of("plain", 1);
    const auto [ramp, loss_of_ramp] = growth_of("ramp", 2);
    // A factor of 2 grows as step^1 from half of the steps on.
    EXPECT_NEAR(ramp - plain, 1, 0.25) << "seed " << seed;
    EXPECT_LT(plain, 0.5);
    EXPECT_GT(ramp, 0.5);
    EXPECT_NEAR(loss_of_ramp, loss, 0.05) << "training hardly changes";
  }
}

}  // namespace
}  // namespace difftape::run
