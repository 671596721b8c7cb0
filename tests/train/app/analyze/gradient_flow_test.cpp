#include "train/app/analyze/gradient_flow.h"

#include "core/error.h"
#include "tests/train/run/loop/tiny.h"
#include "train/run/loop/step.h"
#include "train/run/records/metrics.h"

namespace difftape::app {
namespace {

using test::TinyProject;

std::string group_of(const std::string& name, Role role = Role::projection) {
  Parameter parameter;
  parameter.name = name;
  parameter.role = role;
  const GradientGroup group = gradient_group(parameter);
  return group.layer_name() + " " + group.name;
}

FlowRequest request(std::vector<Index> steps, std::vector<Index> seeds = {1}) {
  FlowRequest made;
  made.kinds = {"diff_v1", "diff_v2"};
  made.steps = std::move(steps);
  made.seeds = std::move(seeds);
  return made;
}

/// Norms of a group by the plain names.
const SeedsBySteps& norms(const KindFlow& kind, const std::string& layer, const std::string& name) {
  for (const auto& [group, values] : kind.norms) {
    if (group.layer_name() == layer && group.name == name) return values;
  }
  throw std::logic_error("no group " + layer + " " + name);
}

TEST(GradientGroup, is_read_from_the_name_of_the_parameter) {
  EXPECT_EQ(group_of("model.embed_tokens.weight", Role::embedding), "- embedding");
  EXPECT_EQ(group_of("model.layers.0.self_attn.q_proj.weight"), "0 q_proj");
  EXPECT_EQ(group_of("model.layers.12.self_attn.gate_proj.weight"), "12 gate_proj");
  EXPECT_EQ(group_of("model.layers.2.self_attn.lambda_q1", Role::other), "2 lambda");
  EXPECT_EQ(group_of("model.layers.2.self_attn.lambda_proj.weight"), "2 lambda");
  EXPECT_EQ(group_of("model.layers.2.self_attn.subln.weight", Role::norm_weight), "2 subln");
  EXPECT_EQ(group_of("model.layers.3.mlp.gate_proj.weight"), "3 mlp");
  EXPECT_EQ(group_of("model.layers.3.input_layernorm.weight", Role::norm_weight), "3 norms");
  EXPECT_EQ(group_of("model.norm.weight", Role::norm_weight), "- norms");
  EXPECT_EQ(group_of("lm_head.weight"), "- head");
}

TEST(GradientFlow, norms_are_those_of_a_training_run_of_the_same_kind) {
  TinyProject project("diff_v1");
  project.config.log.param_grad_norms_interval = 1;
  const GradientFlow flow = measure_gradient_flow(project.config, request({0, 4}));
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  const auto columns = run::read_metrics(project / "run/metrics.jsonl").columns;
  const KindFlow& v1 = flow.kinds[0];
  EXPECT_EQ(v1.kind, "diff_v1");
  const std::string layer = "optim/grad_norm/model.layers.1.";
  for (const size_t step : {0u, 1u}) {
    const size_t row = step == 0 ? 0 : 4;  // step 5 of the run takes its gradient after 4 updates
    EXPECT_EQ(v1.loss[step], columns.at("train/loss")[row]);
    EXPECT_DOUBLE_EQ(norms(v1, "1", "q_proj")[step],
                     columns.at(layer + "self_attn.q_proj.weight")[row]);
    double squares = 0;
    for (const char* name : {"gate_proj", "up_proj", "down_proj"}) {
      squares += std::pow(columns.at(layer + "mlp." + name + ".weight")[row], 2);
    }
    EXPECT_DOUBLE_EQ(norms(v1, "1", "mlp")[step], std::sqrt(squares));
    EXPECT_GT(norms(v1, "1", "lambda")[step], 0);
    // Layers and what is outside them make up the whole gradient.
    double all = 0;
    for (const auto& [group, values] : v1.norms) {
      if (group.layer != GradientGroup::kAllLayers) all += values[step] * values[step];
    }
    EXPECT_NEAR(std::sqrt(all) / columns.at("optim/grad_norm")[row], 1, 1e-12);
    const double first = norms(v1, "0", "v_proj")[step], second = norms(v1, "1", "v_proj")[step];
    EXPECT_DOUBLE_EQ(norms(v1, "all", "v_proj")[step], std::hypot(first, second));
  }
  EXPECT_NE(v1.loss[0], v1.loss[1]);
}

TEST(GradientFlow, ratios_divide_by_the_baseline_where_it_has_the_group) {
  const TinyProject project("diff_v2");
  const GradientFlow flow = measure_gradient_flow(project.config, request({0, 2}, {1, 9}));
  EXPECT_EQ(flow.baseline.kind, "softmax");
  EXPECT_LT(flow.baseline.parameters, flow.kinds[1].parameters);
  int shared = 0, added = 0;
  for (const auto& [group, values] : flow.kinds[1].norms) {
    const SeedsBySteps ratios = gradient_ratios(flow, flow.kinds[1], group);
    ASSERT_EQ(values.size(), 4u);
    if (ratios.empty()) {
      EXPECT_EQ(group.name, "lambda");
      ++added;
      continue;
    }
    ++shared;
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_GT(ratios[i], 0);
      EXPECT_DOUBLE_EQ(ratios[i] * flow.baseline.norms.at(group)[i], values[i]);
    }
    EXPECT_NE(ratios[0], ratios[1]) << "steps";
    EXPECT_NE(ratios[0], ratios[2]) << "seeds";
  }
  EXPECT_EQ(added, 3) << "two layers and all";
  EXPECT_EQ(shared, 3 * 6 + 3);
}

TEST(GradientFlow, each_seed_gives_the_numbers_it_gives_alone) {
  const TinyProject project;
  const GradientFlow both = measure_gradient_flow(project.config, request({0, 2}, {1, 9})),
                     alone = measure_gradient_flow(project.config, request({2}, {9}));
  for (const auto& [group, values] : alone.kinds[0].norms) {
    EXPECT_EQ(both.kinds[0].norms.at(group)[3], values[0]) << group.name;
  }
}

TEST(GradientFlow, a_run_that_diverges_is_a_result) {
  TinyProject project;
  project.config.optim.lr = 1e30;
  project.config.optim.max_grad_norm = 0;
  project.config.optim.warmup_steps = 0;
  const GradientFlow flow = measure_gradient_flow(project.config, request({0, 1}));
  ASSERT_EQ(flow.baseline.diverged.size(), 1u);
  EXPECT_EQ(flow.baseline.diverged[0],
            "softmax, seed 1: diverged at step 2, train/loss is not finite");
  EXPECT_TRUE(std::isfinite(norms(flow.kinds[0], "0", "q_proj")[0]));
  EXPECT_TRUE(std::isnan(norms(flow.kinds[0], "0", "q_proj")[1]));
}

}  // namespace
}  // namespace difftape::app
