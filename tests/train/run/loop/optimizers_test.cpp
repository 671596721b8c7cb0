// Tests complete runs with every optimizer.
#include "core/pool.h"
#include "tests/train/run/loop/tiny.h"
#include "train/run/loop/step.h"
#include "train/run/loop/step_memory.h"
#include "train/run/records/h5.h"

namespace difftape::run {
namespace {

struct EveryOptimizer : testing::TestWithParam<std::string> {
  EveryOptimizer() { project.config.optim.name = from_string<OptimizerKind>(GetParam()).value(); }

  TinyProject project{"diff_v2"};
};

TEST_P(EveryOptimizer, learns) {
  const std::map<OptimizerKind, double> lr{{OptimizerKind::lion, 3e-3}, {OptimizerKind::sgd, 3e-2}};
  OptimConfig& optim = project.config.optim;
  if (lr.contains(optim.name)) optim.lr = lr.at(optim.name);
  project.config.train.steps = 60;
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  const auto lines = metrics_lines(project / "run");
  EXPECT_NEAR(lines.front()["train/loss"], std::log(256), 0.2);
  EXPECT_LT(lines.back()["val/loss"], 3.6);
}

TEST_P(EveryOptimizer, gives_the_same_bits_for_1_2_and_4_threads) {
  project.config.train.steps = 4;
  project.config.log.param_grad_norms_interval = project.config.log.diagnostics_interval = 1;
  test::expect_the_same_bits_with_threads(project);
}

TEST_P(EveryOptimizer, resumes_to_the_bits_of_an_uninterrupted_run) {
  project.config.train.checkpoint_interval = 6;
  ASSERT_EQ(project.train("whole"), system::Exit::ok);
  test::cut_after(6, project / "whole", project / "cut");
  ASSERT_EQ(project.train("cut", true), system::Exit::ok);
  test::expect_the_same_run(project / "cut", project / "whole");
}

TEST_P(EveryOptimizer, stores_its_state_in_checkpoints) {
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  TrainState state(project.config);
  state.restore(find_checkpoint(project / "run"));
  EXPECT_EQ(state.optimizer.steps(), 12);
  const h5::File file = h5::File::open(find_checkpoint(project / "run"));
  for (const Optimizer::State& kept : state.optimizer.states()) {
    const std::string group = "/optim/" + kept.parameter->name;
    EXPECT_EQ(file.children(group).size(), kept.tensors.size()) << group;
    for (const StateTensor& tensor : kept.tensors) {
      const auto in_file = file.read<real>(group + "/" + tensor.name);
      EXPECT_TRUE(std::ranges::equal(in_file, tensor.value.values())) << group << tensor.name;
      EXPECT_TRUE(std::ranges::any_of(in_file, [](real x) { return x != 0; }))
          << group << tensor.name;
    }
  }
}

TEST_P(EveryOptimizer, takes_the_memory_that_a_dry_run_counts) {
  // Memory peaks in the loss with a large vocabulary, and in the optimizer step with a small one.
  for (const Index vocab_size : {256, 4096}) {
    Config config = test::wider(project.config);
    config.model.vocab_size = vocab_size;
    const auto before = pool::stats().bytes_in_use;
    TrainState state(config);
    train_step(state);
    pool::reset_peak();
    train_step(state);
    EXPECT_EQ(step_memory(config).total(),
              static_cast<Index>(pool::stats().peak_bytes_in_use - before));
    EXPECT_EQ(step_memory(config).moments,
              state.optimizer.state_size() * static_cast<Index>(sizeof(real)));
  }
}

TEST_P(EveryOptimizer, allocates_no_tensor_after_the_second_step) {
  TrainState state(test::wider(project.config));
  for (const int step : {1, 2}) EXPECT_EQ(train_step(state).step, step);
  const auto before = pool::stats().system_allocations;
  for (const int step : {3, 4, 5}) EXPECT_EQ(train_step(state).step, step);
  EXPECT_EQ(pool::stats().system_allocations, before);
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryOptimizer, testing::ValuesIn(names<OptimizerKind>()),
                         [](const auto& kind) { return kind.param; });

TEST(Optimizers, keep_two_numbers_per_parameter_in_adamw_and_one_in_lion_and_sgd) {
  Config config = TinyProject().config;
  const Index parameters = LanguageModel(config.model).parameters().count();
  const auto kept = [&](OptimizerKind kind) {
    config.optim.name = kind;
    return step_memory(config).moments / static_cast<Index>(sizeof(real));
  };
  EXPECT_EQ(kept(OptimizerKind::adamw), 2 * parameters);
  EXPECT_EQ(kept(OptimizerKind::stable_adamw), 2 * parameters);
  EXPECT_EQ(kept(OptimizerKind::lion), parameters);
  EXPECT_EQ(kept(OptimizerKind::sgd), parameters);
  const Index attention = 4 * 16 * 16, mlp = 3 * 16 * 24;
  EXPECT_EQ(kept(OptimizerKind::muon), 2 * parameters - 2 * (attention + mlp));
}

TEST(Optimizers, resume_from_an_older_checkpoint_of_adamw) {
  const TinyProject project;
  TrainState saved(project.config), loaded(project.config);
  train_step(saved);
  CheckpointMeta meta = saved.meta(saved.step);
  for (const char* key : {"  name: adamw\n", "  momentum: 0.95\n"}) {
    const size_t at = meta.config_yaml.find(key);
    ASSERT_NE(at, std::string::npos) << meta.config_yaml;
    meta.config_yaml.erase(at, std::strlen(key));
  }
  const auto path = project / "before.h5";
  write_checkpoint(path, saved.model.parameters(), &saved.optimizer, meta);
  EXPECT_EQ(h5::File::open(path).children("/optim/lm_head.weight"),
            (std::vector<std::string>{"m", "v"}));
  loaded.restore(path);
  EXPECT_EQ(train_step(loaded).norms.global, train_step(saved).norms.global);
  EXPECT_EQ(train_step(loaded).loss, train_step(saved).loss);
}

}  // namespace
}  // namespace difftape::run
