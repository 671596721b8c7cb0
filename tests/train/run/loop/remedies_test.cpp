// Remedies against instability in a run: what they log, and that they break no promise of a run.
#include "tests/train/run/loop/tiny.h"
#include "train/run/loop/step.h"

namespace difftape::run {
namespace {

using test::metrics_lines;
using test::TinyProject;

/// A run with all of them that can be had together.
Config treated(Config config) {
  config.model.embedding_norm = true;
  config.model.final_logit_softcap = 20;
  config.model.z_loss_weight = 1e-3;
  config.model.attention.qk_clip_threshold = 0.05;
  config.model.init = {.preset = InitPreset::torch, .embedding_std = 0.5};
  config.train.gradient_accumulation_steps = 2;
  return config;
}

TEST(Remedies, are_bitwise_equal_for_1_2_and_4_threads) {
  for (const std::string kind : {"softmax", "diff_v2"}) {
    TinyProject project(kind);
    project.config = treated(project.config);
    project.config.train.steps = 4;
    project.config.log.param_grad_norms_interval = 1;
    test::expect_the_same_bits_with_threads(project);
  }
}

TEST(Remedies, survive_a_restart_bit_for_bit) {
  TinyProject project("diff_v1");
  const Config config = treated(project.config);
  TrainState whole(config), part(config), rest(config);
  for (int i = 0; i < 4; ++i) train_step(whole), train_step(part);
  part.save(project / "saved");
  rest.restore(find_checkpoint(project / "saved"));
  for (int i = 0; i < 4; ++i) {
    const Step a = train_step(whole), b = train_step(rest);
    EXPECT_EQ(a.loss, b.loss);
    EXPECT_EQ(a.squared_log_z, b.squared_log_z);
    EXPECT_EQ(a.qk_clip.value().largest, b.qk_clip.value().largest);
    EXPECT_EQ(a.qk_clip->heads, b.qk_clip->heads);
  }
}

TEST(Remedies, give_the_same_bits_with_activation_checkpointing) {
  TinyProject project("diff_v2");
  Config config = treated(project.config);
  TrainState keeps(config);
  config.train.activation_checkpointing = ActivationCheckpointing::blocks;
  TrainState recomputes(config);
  for (int i = 0; i < 4; ++i) {
    const Step a = train_step(keeps), b = train_step(recomputes);
    EXPECT_EQ(a.loss, b.loss);
    EXPECT_EQ(a.norms.global, b.norms.global);
    EXPECT_EQ(a.qk_clip.value().largest, b.qk_clip.value().largest);
  }
}

TEST(ZLoss, is_logged_beside_losses_that_leave_it_out) {
  TinyProject project;
  TrainState plain(project.config);
  project.config.model.z_loss_weight = 0.5;
  TrainState state(project.config);
  EXPECT_EQ(state.validate().loss, plain.validate().loss);
  const Step with = train_step(state), without = train_step(plain);
  EXPECT_EQ(with.loss, without.loss);
  EXPECT_EQ(with.squared_log_z, without.squared_log_z);
  EXPECT_NE(with.norms.global, without.norms.global);
  EXPECT_NE(train_step(state).loss, train_step(plain).loss);

  ASSERT_EQ(project.train("run"), system::Exit::ok);
  const auto first = metrics_lines(project / "run").front();
  EXPECT_EQ(first["train/loss"], with.loss);
  EXPECT_EQ(first["train/z_loss"], 0.5 * with.squared_log_z);
  EXPECT_NEAR(with.squared_log_z, std::pow(std::log(256), 2), 0.5) << "logits are almost 0";
}

TEST(ZLoss, keeps_log_z_smaller_than_it_would_be) {
  TinyProject project;
  TrainState plain(project.config);
  project.config.model.z_loss_weight = 0.5;
  TrainState state(project.config);
  Step with, without;
  for (int i = 0; i < 60; ++i) with = train_step(state), without = train_step(plain);
  EXPECT_LT(with.squared_log_z, 0.9 * without.squared_log_z);
}

TEST(QkClip, bounds_the_logits_of_the_next_step_and_logs_what_it_did) {
  TinyProject project("diff_v1");
  project.config.optim.lr = 0.05;
  project.config.train.steps = 20;
  ASSERT_EQ(project.train("free"), system::Exit::ok);
  EXPECT_FALSE(metrics_lines(project / "free").back().contains("optim/qk_clip_heads"));
  project.config.model.attention.qk_clip_threshold = 0.25;
  ASSERT_EQ(project.train("clipped"), system::Exit::ok);
  const auto lines = metrics_lines(project / "clipped");
  bool clipped = false;
  for (const auto& line : lines) {
    const double largest = line["optim/qk_clip_logit_max"], heads = line["optim/qk_clip_heads"];
    EXPECT_EQ(largest > 0.25, heads > 0);
    EXPECT_LE(heads, 4);
    clipped = clipped || heads > 0;
  }
  EXPECT_TRUE(clipped);
  const auto logit = [&](const char* run) {
    return metrics_lines(project / run).back()["attn/logit_max/0"].get<double>();
  };
  EXPECT_LT(logit("clipped"), logit("free"));
}

}  // namespace
}  // namespace difftape::run
