// Tests that a run reports divergence as a result instead of a crash.
#include "tests/train/run/loop/tiny.h"
#include "train/run/loop/step.h"
#include "train/run/records/metrics.h"
#include "train/run/records/run_files.h"
#include "train/study/page/report.h"

namespace difftape::run {
namespace {

void explode(TinyProject& project) {
  project.config = test::explosive(project.config);
  project.save();
}

TEST(Divergence, of_every_attention_kind_is_recorded_with_step_quantity_and_parameter) {
  for (const std::string& kind : attention_kinds()) {
    TinyProject project(kind);
    explode(project);
    EXPECT_EQ(project.train("run"), system::Exit::diverged);
    const RunStatus status = read_status(project / "run");
    EXPECT_EQ(status.state, RunState::diverged);
    EXPECT_EQ(status.exit_code, 86);
    EXPECT_EQ(status.steps, 12);
    ASSERT_TRUE(status.diverged.has_value());
    EXPECT_EQ(status.diverged->step, status.step);
    EXPECT_EQ(status.diverged->step, 2) << kind;
    EXPECT_EQ(status.diverged->quantity, "train/loss");
    EXPECT_EQ(status.diverged->parameter, "lm_head.weight");
    EXPECT_THAT(status.diverged->op, EndsWith(", forward")) << kind;
    EXPECT_THAT(project.console.str(),
                EndsWith("diverged at step 2: train/loss is not finite, first in lm_head.weight; "
                         "first op: " +
                         status.diverged->op + "\n"));
  }
}

TEST(Divergence, logs_a_last_line_with_the_value_that_is_not_finite) {
  TinyProject project;
  explode(project);
  EXPECT_EQ(project.train("run"), system::Exit::diverged);
  const auto lines = metrics_lines(project / "run");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0]["train/loss"].is_number());
  for (const char* name : {"train/loss", "optim/grad_norm", "optim/grad_norm/lm_head.weight"}) {
    const auto& value = lines[1].at(name);
    EXPECT_TRUE(value == "NaN" || value == "Infinity") << name << " is " << value;
  }
  const MetricsTable table = read_metrics(project / "run/metrics.jsonl");
  EXPECT_FALSE(std::isfinite(table.columns.at("train/loss").values().back()));
  EXPECT_TRUE(fs::exists(project / "run/attention_maps.h5"));
}

TEST(Divergence, of_the_validation_loss_only_is_detected) {
  TinyProject project;
  explode(project);
  project.config.train.eval_interval = 1;
  EXPECT_EQ(project.train("run"), system::Exit::diverged);
  const RunStatus status = read_status(project / "run");
  ASSERT_TRUE(status.diverged.has_value());
  EXPECT_EQ(status.diverged->step, 1);
  EXPECT_EQ(status.diverged->quantity, "val/loss");
  EXPECT_THAT(status.diverged->op, EndsWith(", forward"));
  const auto lines = metrics_lines(project / "run");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0]["train/loss"].is_number());
  EXPECT_TRUE(lines[0]["val/loss"].is_string());
}

TEST(Divergence, has_exit_code_86_and_appears_in_reports) {
  TinyProject project;
  ASSERT_EQ(project.train("fine"), system::Exit::ok);
  explode(project);
  EXPECT_EQ(test::error(86, project.difftape({"train", "tiny.yaml", "--out", "run"})), "")
      << "it is a result, not an error";
  const auto report = project.difftape({"report", "fine", "run"});
  EXPECT_EQ(report.exit, 0) << report.err;
  EXPECT_THAT(report.out, HasSubstr("diverged at step 2 (train/loss)"));
  EXPECT_THAT(report.out, HasSubstr("report: report/report.html"));
  EXPECT_THAT(contents(project / "report/report.html"),
              HasSubstr("diverged at step 2 (train/loss)"));
}

TEST(Divergence, names_the_first_op_whose_value_is_not_finite) {
  TinyProject project;
  TrainState state(project.config);
  Parameter& weight = *state.model.parameters().find("model.layers.1.self_attn.o_proj.weight");
  weight.value.fill(std::numeric_limits<real>::infinity());
  const std::string op = first_non_finite_op(state, batches_of(state, 1));
  EXPECT_EQ(op, "linear in model.layers.1.self_attn.o_proj, forward");
  EXPECT_EQ(first_non_finite_op_in_validation(state), op);
}

TEST(Divergence, names_the_first_op_whose_pullback_is_not_finite) {
  for (const auto recompute : {ActivationCheckpointing::none, ActivationCheckpointing::blocks}) {
    TinyProject project;
    project.config.train.activation_checkpointing = recompute;
    TrainState state(project.config);
    // The last norm scales up a tiny residual stream, and its gradient overflows.
    for (Parameter& p : state.model.parameters()) {
      if (p.name == "model.embed_tokens.weight") p.value.fill(real(1e-35));
      if (p.name.ends_with("o_proj.weight") || p.name.ends_with("down_proj.weight"))
        p.value.fill(0);
      if (p.name == "model.norm.weight") p.value.fill(real(3e38));
      if (p.name == "lm_head.weight") p.value.fill(0);
    }
    Tensor head = state.model.parameters().find("lm_head.weight")->value;
    std::fill_n(head.row('e'), head.shape().last(), real(1));
    EXPECT_EQ(first_non_finite_op(state, batches_of(state, 1)), "rms_norm in model.norm, backward")
        << to_string(recompute);
  }
}

TEST(Divergence, has_no_op_if_all_values_of_the_step_are_finite) {
  TinyProject project;
  TrainState state(project.config);
  EXPECT_EQ(first_non_finite_op(state, batches_of(state, 1)), "");
  EXPECT_EQ(first_non_finite_op_in_validation(state), "");
}

// The factor of the last of two steps is representable, but twice the factor, of a third step, is
// not. Tiny embeddings enlarge the gradient in the first norm, which overflows.
TEST(Divergence, repeats_the_step_with_its_own_factor_of_the_gradient) {
  if (sizeof(real) == 8) GTEST_SKIP() << "the factor overflows single precision only";
  TinyProject project;
  project.config.train.steps = 2;
  project.config.train.gradient_ramp = 2e38;
  TrainState state(project.config);
  state.step = 1;
  Tensor& embeddings = state.model.parameters().find("model.embed_tokens.weight")->value;
  for (real& x : embeddings.values()) x *= static_cast<real>(1e-4);
  const Step step = train_step(state);
  ASSERT_TRUE(step.diverged.has_value());
  EXPECT_EQ(step.diverged->op, "rms_norm in model.layers.0.input_layernorm, backward");
}

TEST(Divergence, does_not_depend_on_activation_checkpointing) {
  std::string ops[2];
  for (const bool recompute : {false, true}) {
    TinyProject project("diff_v2");
    project.config.train.activation_checkpointing =
        recompute ? ActivationCheckpointing::blocks : ActivationCheckpointing::none;
    explode(project);
    EXPECT_EQ(project.train("run"), system::Exit::diverged);
    ops[recompute] = read_status(project / "run").diverged->op;
  }
  EXPECT_NE(ops[0], "");
  EXPECT_EQ(ops[0], ops[1]);
}

}  // namespace
}  // namespace difftape::run
