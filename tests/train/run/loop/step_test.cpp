#include "train/run/loop/step.h"

#include "tests/train/run/loop/tiny.h"

namespace difftape::run {
namespace {

using test::TinyProject;

TEST(Step, two_micro_batches_of_two_are_a_batch_of_four) {
  for (const std::string& kind : attention_kinds()) {
    TinyProject project(kind);
    Config whole = project.config, parts = project.config;
    whole.data.batch_size = 4;
    parts.data.batch_size = 2;
    parts.train.gradient_accumulation_steps = 2;
    EXPECT_EQ(tokens_per_step(whole), tokens_per_step(parts));
    TrainState a(whole), b(parts);
    for (int i = 0; i < 5; ++i) {
      const Step one = train_step(a), two = train_step(b);
      EXPECT_NEAR(one.loss, two.loss, 1e-5 * one.loss) << kind << " step " << one.step;
      EXPECT_NEAR(one.norms.global, two.norms.global, 1e-4 * one.norms.global) << kind;
    }
    EXPECT_NE(train_step(b).loss, train_step(b).loss) << "steps see different data";
  }
}

TEST(Step, the_order_of_the_data_is_the_same_for_every_variant) {
  std::vector<std::vector<std::int32_t>> tokens;
  for (const std::string& kind : attention_kinds()) {
    const TinyProject project(kind);
    const TrainState state(project.config);
    auto& seen = tokens.emplace_back();
    for (Index step = 0; step < 5; ++step) {
      for (Index micro = 0; micro < 2; ++micro) {
        const Batch batch = state.data->train_batch(step, micro);
        seen.insert(seen.end(), batch.tokens.begin(), batch.tokens.end());
      }
    }
    const Batch val = state.data->val_batch(0);
    seen.insert(seen.end(), val.tokens.begin(), val.tokens.end());
  }
  EXPECT_EQ(tokens[0].size(), 11u * 2 * 17);
  for (const auto& of_kind : tokens) EXPECT_EQ(of_kind, tokens[0]);
}

TEST(Step, shared_parameters_of_all_variants_begin_byte_identical) {
  const TinyProject softmax("softmax"), v1("diff_v1"), v2("diff_v2");
  TrainState a(softmax.config), b(v1.config), c(v2.config);
  int shared = 0;
  for (const Parameter& p : a.model.parameters()) {
    for (TrainState* other : {&b, &c}) {
      const Parameter* same = other->model.parameters().find(p.name);
      if (same == nullptr || same->shape != p.shape) continue;
      EXPECT_TRUE(std::ranges::equal(p.value.values(), same->value.values())) << p.name;
      ++shared;
    }
  }
  EXPECT_GT(shared, 30);
}

TEST(Validation, reads_more_batches_after_the_last_step_unless_they_are_generated) {
  constexpr Index kAvailable = 5000;
  Config config;
  config.train = {.steps = 100, .eval_batches = 8};
  EXPECT_EQ(batches_to_validate(config, 99, kAvailable), 8);
  EXPECT_EQ(batches_to_validate(config, 99, 3), 3);
  EXPECT_EQ(batches_to_validate(config, 100, kAvailable), kFinalEvalBatches);
  EXPECT_EQ(batches_to_validate(config, 100, 30), 30) << "all that is held out";
  config.data.type = DataKind::mqar;
  EXPECT_EQ(batches_to_validate(config, 100, kAvailable), 8);
  config.train.final_eval_batches = 9;
  EXPECT_EQ(batches_to_validate(config, 100, kAvailable), 9);
  EXPECT_EQ(batches_to_validate(config, 99, kAvailable), 8);
}

TEST(Validation, of_all_that_is_left_counts_the_last_step_once) {
  Config config;
  config.train = {.steps = 100, .eval_interval = 25, .eval_batches = 8};
  EXPECT_EQ(batches_left_to_validate(config, 0, 50), 3 * 8 + 50) << "steps 25, 50, 75 and 100";
  EXPECT_EQ(batches_left_to_validate(config, 25, 50), 2 * 8 + 50);
  EXPECT_EQ(batches_left_to_validate(config, 99, 50), 50);
  config.train.eval_interval = 30;
  EXPECT_EQ(batches_left_to_validate(config, 0, 50), 3 * 8 + 50) << "steps 30, 60, 90 and 100";
  config.train.eval_interval = 0;
  EXPECT_EQ(batches_left_to_validate(config, 0, 50), 50);
}

TEST(Validation, of_a_run_reads_as_many_batches_as_are_counted_beforehand) {
  const TinyProject project;  // 12 steps, validated every 5
  TrainState state(project.config);
  const Index available = state.data->val_batches();
  Index losses = 0;
  const Tape::Events count{.on_value = [&](std::string_view op, std::string_view, const Tensor&) {
    losses += op == "cross_entropy" ? 1 : 0;
  }};
  for (state.step = 1; state.step <= project.config.train.steps; ++state.step) {
    if (due(state.step, project.config.train.eval_interval, project.config.train.steps)) {
      state.validate(count);
    }
  }
  EXPECT_GT(available, project.config.train.eval_batches);
  EXPECT_EQ(losses, batches_left_to_validate(project.config, 0, available));
}

TEST(Step, that_diverges_leaves_the_parameters_as_they_were) {
  TinyProject project;
  TrainState state(project.config);
  train_step(state);
  Parameter* embedding = state.model.parameters().find("model.embed_tokens.weight");
  Parameter* head = state.model.parameters().find("lm_head.weight");
  embedding->value.values()[0] = std::numeric_limits<real>::quiet_NaN();
  std::ranges::fill(head->value.values(), std::numeric_limits<real>::quiet_NaN());
  Parameter* norm = state.model.parameters().find("model.norm.weight");
  const std::vector<real> before(norm->value.values().begin(), norm->value.values().end());
  const Step step = train_step(state);
  ASSERT_TRUE(step.diverged.has_value());
  EXPECT_EQ(step.diverged->step, 2);
  EXPECT_EQ(step.diverged->quantity, "train/loss");
  EXPECT_EQ(step.diverged->parameter, "model.embed_tokens.weight");
  EXPECT_TRUE(step.spike);
  EXPECT_TRUE(std::ranges::equal(norm->value.values(), before));
  EXPECT_EQ(state.optimizer.steps(), 1);
}

}  // namespace
}  // namespace difftape::run
