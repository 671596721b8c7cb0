// Tests that a distributed run has the bits of a run in one process.
#include "train/run/loop/data_parallel.h"

#include "core/parallel.h"
#include "core/pool.h"
#include "tests/train/run/loop/mpirun.h"
#include "tests/train/run/loop/uneven_batch.h"
#include "train/run/loop/step.h"

namespace difftape::run {
namespace {

using test::Mpirun;

class EveryKindTogether : public Mpirun, public testing::WithParamInterface<std::string> {
 protected:
  EveryKindTogether() : Mpirun(GetParam()) {}
};

TEST_P(EveryKindTogether, has_the_bits_of_one_process_in_two) { expect_the_bits_of_one(2); }

INSTANTIATE_TEST_SUITE_P(Attention, EveryKindTogether, testing::ValuesIn(attention_kinds()),
                         [](const auto& kind) { return kind.param; });

/// Returns a configuration with parameters of several blocks, one of them far larger than the rest.
Config with_a_large_embedding(Config config) {
  config = test::wider(config);
  config.model.vocab_size = 16384;
  config.model.d_ff = 320;
  config.model.tie_word_embeddings = true;
  return config;
}

class EveryOptimizerTogether : public Mpirun, public testing::WithParamInterface<std::string> {};

TEST_P(EveryOptimizerTogether, has_the_bits_of_one_process_in_two) {
  project.config.optim.name = from_string<OptimizerKind>(GetParam()).value();
  expect_the_bits_of_one(2);
}

TEST_P(EveryOptimizerTogether, has_the_bits_of_one_process_if_parameters_are_cut) {
  project.config = with_a_large_embedding(project.config);
  project.config.optim.name = from_string<OptimizerKind>(GetParam()).value();
  project.config.train.steps = project.config.optim.warmup_steps = 3;
  expect_the_bits_of_one(3);
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryOptimizerTogether, testing::ValuesIn(names<OptimizerKind>()),
                         [](const auto& kind) { return kind.param; });

class EveryPrecisionTogether : public Mpirun, public testing::WithParamInterface<std::string> {};

TEST_P(EveryPrecisionTogether, has_the_bits_of_one_process_in_two) {
  const Precision precision = from_string<Precision>(GetParam()).value();
  const std::string unsupported = unsupported_reason(precision);
  if (!unsupported.empty()) GTEST_SKIP() << test::kOtherHardware << unsupported;
  project.config = test::wider(project.config);
  project.config.train.precision = precision;
  project.config.train.steps = project.config.optim.warmup_steps = 3;
  expect_the_bits_of_one(2);
}

INSTANTIATE_TEST_SUITE_P(Words, EveryPrecisionTogether, testing::ValuesIn(names<Precision>()),
                         [](const auto& word) { return word.param; });

class Together : public Mpirun {};

TEST_F(Together, has_the_validation_by_domain_of_one_process) {
  put(project / "a.txt", test::tiny_text());
  put(project / "b.txt", test::tiny_text().substr(0, 333));
  project.config.data.val_path = {project / "a.txt", project / "b.txt"};
  expect_the_bits_of_one(2);
  const auto last = metrics_lines(project / "several").back();
  EXPECT_TRUE(last.contains("val/loss/b"));
}

TEST_F(Together, has_the_bits_of_one_process_in_double_precision) {
  expect_the_bits_of_one(2, 0, DIFFTAPE_TEST_PROGRAM_F64);
}

TEST_F(Together, has_the_bits_of_one_process_with_all_step_level_features) {
  Config& config = project.config;
  config.model.tie_word_embeddings = true;
  config.model.z_loss_weight = 1e-3;
  config.model.attention.qk_clip_threshold = 0.05;
  config.train.activation_checkpointing = ActivationCheckpointing::blocks;
  config.train.gradient_accumulation_steps = 7;  // leaves; 3, 2 and 2 per process
  expect_the_bits_of_one(3);
  EXPECT_GT(metrics_lines(project / "several").back()["optim/qk_clip_heads"], 0);
}

TEST_F(Together, has_the_bits_of_one_process_with_experts_and_their_bias) {
  Config& config = project.config;
  config.model.moe = test::every_part_of_moe();
  config.model.attention.qk_clip_threshold = 0.05;
  config.train.activation_checkpointing = ActivationCheckpointing::blocks;
  expect_the_bits_of_one(2);
  EXPECT_GT(metrics_lines(project / "several").back()["optim/qk_clip_heads"], 0)
      << "both observe the step";
}

TEST_F(Together, has_the_bits_of_one_process_with_shared_keys_and_values) {
  ModelConfig& model = project.config.model;
  model.num_layers = 3;
  model.yoco_self_layers = 1;
  model.attention.sliding_window = 3;
  model.attention.qk_clip_threshold = 0.05;
  project.config.train.activation_checkpointing = ActivationCheckpointing::blocks;
  expect_the_bits_of_one(2);
}

/// Runs with one micro-batch per step, cut into leaves.
class WholeBatchTogether : public Mpirun, public testing::WithParamInterface<int> {
 protected:
  WholeBatchTogether() {
    project.config.data.batch_size = 8;
    project.config.train.gradient_accumulation_steps = 1;
  }
};

TEST_P(WholeBatchTogether, has_the_bits_of_one_process) { expect_the_bits_of_one(GetParam()); }

TEST_P(WholeBatchTogether, has_the_bits_of_one_process_if_parameters_are_cut) {
  project.config = with_a_large_embedding(project.config);
  project.config.train.gradient_accumulation_steps = 1;
  project.config.train.steps = project.config.optim.warmup_steps = 3;
  expect_the_bits_of_one(GetParam());
}

TEST_P(WholeBatchTogether, has_the_bits_of_one_process_with_unequal_scored_targets) {
  Config& config = project.config;
  config.data.type = DataKind::needles;
  config.data.path = {};
  config.data.seq_len = config.model.max_seq_len = 64;
  config.data.batch_size = 11;  // leaves of two sequences and of one
  config.data.needles.facts = {2, 4};
  config.data.needles.queries = {1, 3};
  config.model.vocab_size = 256;
  config.train.steps = config.optim.warmup_steps = 3;
  expect_the_bits_of_one(GetParam());
}

TEST_P(WholeBatchTogether, has_the_bits_of_one_process_with_packed_documents) {
  project.config.data.eos_token_id = '\n';
  expect_the_bits_of_one(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Processes, WholeBatchTogether, testing::Values(2, 3, 4, 8),
                         testing::PrintToStringParamName());

TEST_F(Together, has_the_bits_of_one_process_for_task_accuracy) {
  project.config.model.vocab_size = 256;
  project.config.data = {.type = DataKind::mqar,
                         .path = {},
                         .seq_len = 8,
                         .batch_size = 2,
                         .mqar = {.keys = 4, .values = 8, .pairs = 2}};
  expect_the_bits_of_one(2);
  EXPECT_TRUE(metrics_lines(project / "several").back().contains("val/accuracy"));
}

TEST_F(Together, has_the_bits_of_one_process_in_a_divergence) {
  project.config.optim.lr = 1e30;
  expect_the_bits_of_one(2, 86);
}

TEST_F(Together, has_the_bits_of_one_process_in_a_divergence_of_a_cut_parameter) {
  project.config = test::explosive(with_a_large_embedding(project.config));
  expect_the_bits_of_one(4, 86);
}

TEST_F(Together, resumes_in_any_number_of_processes) {
  project.config = with_a_large_embedding(project.config);
  project.config.train.gradient_accumulation_steps = 1;
  project.save();
  ASSERT_EQ(project.difftape({"train", "tiny.yaml", "--out", "whole"}).exit, 0);
  const std::string out = (project / "parts").string();
  const auto stop_after = [&](Index step) {  // as if killed after that checkpoint
    test::remove_checkpoints_after(step, project / "parts");
  };
  ASSERT_EQ(together(4, {"train", "tiny.yaml", "--out", out}).exit, 0);
  expect_the_same_bits("whole", "parts");
  stop_after(2);
  ASSERT_EQ(together(3, {"train", "tiny.yaml", "--out", out, "--resume"}).exit, 0);
  expect_the_same_bits("whole", "parts");
  stop_after(4);
  ASSERT_EQ(project.difftape({"train", "tiny.yaml", "--out", out, "--resume"}).exit, 0);
  expect_the_same_bits("whole", "parts");
  stop_after(4);
  ASSERT_EQ(together(8, {"train", out, "--resume=auto"}).exit, 0);
  expect_the_same_bits("whole", "parts");
}

/// Tests that run in processes started by the next test.
class InsideTogether : public Mpirun {
 protected:
  void SetUp() override {
    if (!std::getenv("DIFFTAPE_TEST_INSIDE")) GTEST_SKIP() << "runs in processes of the next test";
    if (distributed::count() == 1) distributed::join();
  }
  static void TearDownTestSuite() {
    if (distributed::count() > 1) distributed::leave();
  }
};

TEST_F(InsideTogether, a_step_sends_the_expected_bytes_evenly) {
  project.config = test::wider(project.config);
  TrainState state(project.config);
  train_step(state);
  const auto before = distributed::bytes_sent();
  train_step(state);
  const std::vector<std::uint64_t> mine{distributed::bytes_sent() - before};
  const auto bytes = static_cast<double>(state.model.parameters().count()) * sizeof(real);
  const auto others = static_cast<double>(distributed::count() - 1);
  ASSERT_EQ(distributed::count(), 4);
  double sum = 0;
  for (const std::uint64_t sent : distributed::all_of(std::span<const std::uint64_t>(mine))) {
    EXPECT_NEAR(static_cast<double>(sent), 2 * others / 4 * bytes, 0.25 * bytes);
    sum += static_cast<double>(sent);
  }
  EXPECT_NEAR(sum, 2 * others * bytes, 0.05 * 2 * others * bytes);
}

TEST_F(InsideTogether, every_process_keeps_a_quarter_of_the_state_whatever_the_shapes) {
  project.config = with_a_large_embedding(project.config);
  TrainState state(project.config);
  Index largest = 0, all = 0;
  for (const Parameter& p : state.model.parameters()) {
    largest = std::max(largest, p.shape.size());
    all += p.shape.size();
  }
  ASSERT_GT(largest, all / 2);
  const auto expect_a_quarter = [&] {
    EXPECT_NEAR(static_cast<double>(state.optimizer.state_size()), 2 * all / 4.0, 2 * kElementGrain)
        << "two moments, within a block";
  };
  expect_a_quarter();
  const auto before = pool::stats().bytes_in_use;
  {
    const WholeOptimizer whole(state.optimizer, true);
    EXPECT_EQ(distributed::rank() == 0, state.optimizer.state_size() == 2 * all);
  }
  expect_a_quarter();
  EXPECT_EQ(pool::stats().bytes_in_use, before);
}

TEST_F(InsideTogether, a_process_without_any_scored_target_takes_part_in_a_step) {
  Config& config = project.config;
  config.model.attention.qk_clip_threshold = 0.05;
  config.data.batch_size = 4;
  config.train.gradient_accumulation_steps = 1;
  const Batch batch = test::uneven_batch(4);  // process 0 has the row without any
  TrainState state(config, std::make_unique<FixedBatches>(std::vector{batch}, 256));
  Tape tape;
  const Var whole = state.loss(tape, batch, nullptr, state.step_observer());
  const auto loss = static_cast<double>(whole.value().item());
  const double largest = state.qk_clip->seen().largest;
  const Step step = train_step(state);
  EXPECT_NEAR(step.loss, loss, 1e-6 * loss);
  EXPECT_NEAR(step.qk_clip->largest, largest, 1e-5 * std::abs(largest));
}

TEST_F(InsideTogether, every_process_follows_the_requests_of_any) {
  const Index rank = distributed::rank();
  const StepRequests any = requests_of_any(
      {.stop = rank == 1 ? system::Exit::sigterm : system::Exit::ok, .save = rank == 2});
  EXPECT_EQ(any.stop, system::Exit::sigterm);
  EXPECT_TRUE(any.save);
  EXPECT_FALSE(requests_of_any({}).save);
}

TEST_F(Together, exchanges_and_keeps_no_more_than_necessary) {
  test::Conditions inside = conditions();
  inside.environment.emplace_back("DIFFTAPE_TEST_INSIDE", "1");
  const auto outcome = test::run(
      {"-n", "4", fs::read_symlink("/proc/self/exe"), "--gtest_filter=InsideTogether.*"}, inside);
  EXPECT_EQ(outcome.exit, 0) << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("4 tests."));
}

}  // namespace
}  // namespace difftape::run
