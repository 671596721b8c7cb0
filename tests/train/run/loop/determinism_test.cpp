// Tests that configuration and seed determine every bit for any number of threads.
#include "core/parallel.h"

#include "optim/optimizer.h"
#include "tests/support/threads.h"
#include "tests/train/run/loop/tiny.h"
#include "train/run/inference/model.h"
#include "train/run/records/metrics.h"
#include "train/system/json.h"

namespace difftape::run {
namespace {

struct Determinism : testing::TestWithParam<std::string> {};

TEST_P(Determinism, metrics_and_checkpoint_are_bitwise_equal_for_1_2_and_4_threads) {
  TinyProject project(GetParam());
  project.config.train.steps = 4;
  project.config.log.param_grad_norms_interval = 1;
  test::expect_the_same_bits_with_threads(project);
}

TEST(DeterminismOfExperts, holds_for_1_2_and_4_threads) {
  TinyProject project("diff_v2");
  project.config.model.moe = test::every_part_of_moe();
  project.config.train.steps = 4;
  test::expect_the_same_bits_with_threads(project);
}

TEST(DeterminismOfTheProgram, holds_for_omp_num_threads_1_2_and_4) {
  TinyProject project("diff_v2");
  project.config = test::wider(project.config);
  project.config.train.steps = project.config.optim.warmup_steps = 4;
  project.save();
  for (const std::string threads : {"1", "2", "4"}) {
    const auto outcome = project.difftape(
        {"train", "tiny.yaml", "--out", threads},
        {.environment = {{"OMP_NUM_THREADS", threads}, {"OMP_WAIT_POLICY", "passive"}}});
    ASSERT_EQ(outcome.exit, 0) << outcome.err;
    const auto env = system::parse_json(contents(project / (threads + "/env.json")));
    EXPECT_EQ(env["machine"]["threads"], std::stoi(threads));
  }
  test::expect_the_same_run(project / "1", project / "2");
  test::expect_the_same_run(project / "1", project / "4");
}

TEST_P(Determinism, another_seed_gives_other_numbers) {
  TinyProject project(GetParam());
  ASSERT_EQ(project.train("a"), system::Exit::ok);
  ASSERT_EQ(project.train("b"), system::Exit::ok);
  project.config.run.seed = 2;
  ASSERT_EQ(project.train("c"), system::Exit::ok);
  EXPECT_EQ(measured(project / "a"), measured(project / "b"));
  EXPECT_NE(measured(project / "a"), measured(project / "c"));
}

TEST(FlushSubnormals, applies_during_a_run_and_is_recorded) {
  for (const bool flush : {true, false}) {
    TinyProject project("diff_v2");
    project.config.train.flush_subnormals = flush;
    ASSERT_EQ(project.train("run"), system::Exit::ok);
    EXPECT_FALSE(flushes_subnormals());
    const auto env = nlohmann::json::parse(contents(project / "run/env.json"));
    const bool single = std::is_same_v<real, float>;
    EXPECT_EQ(env["machine"]["flushes_subnormals"], flush && single);
  }
}

TEST(Engine, is_recorded_and_fixed_for_resumed_runs) {
  if (!unsupported_reason(Engine::portable).empty())
    GTEST_SKIP() << test::kOtherHardware << "no fused multiply-add";
  const std::string before = gemm_backend();
  TinyProject project;
  project.config.train.gemm = Engine::portable;
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  EXPECT_EQ(gemm_backend(), before);
  const auto env = system::parse_json(contents(project / "run/env.json"));
  EXPECT_EQ(env["build"]["gemm_backend"], "portable");
  {
    const NamedModel named = open_model(project / "run");
    EXPECT_STREQ(gemm_backend(), "portable") << "of eval, generate and export too";
  }
  EXPECT_EQ(gemm_backend(), before);
  EXPECT_THAT(test::error(78, project.difftape({"train", "run", "--resume", "--set",
                                                "train.gemm=auto", "--set", "train.steps=20"})),
              HasSubstr("train.gemm"));
}

TEST(Engine, of_bfloat16_units_cannot_be_portable) {
  TinyProject project;
  EXPECT_THAT(
      test::error(78, project.difftape({"train", "tiny.yaml", "--set", "train.gemm=portable",
                                        "--set", "train.precision=bf16"})),
      HasSubstr("train."));
}

INSTANTIATE_TEST_SUITE_P(Attention, Determinism, testing::ValuesIn(attention_kinds()),
                         [](const auto& kind) { return kind.param; });

/// Returns the weights and moments of every parameter in the last checkpoint of a run.
std::vector<Tensor> trained(const Config& config, const fs::path& run) {
  LanguageModel model(config.model);
  model.parameters().initialize(99);
  Optimizer optimizer(model.parameters(), config.optim);
  Checkpoint(find_checkpoint(run)).load(model.parameters(), &optimizer);
  std::vector<Tensor> tensors;
  for (const Optimizer::State& state : optimizer.states()) {
    tensors.push_back(state.parameter->value);
    for (const StateTensor& tensor : state.tensors) tensors.push_back(tensor.value);
  }
  return tensors;
}

TEST(Recompute, changes_no_bit_of_metrics_and_weights) {
  for (const std::string& kind : attention_kinds()) {
    TinyProject project(kind);
    project.config.model.tie_word_embeddings = project.config.model.attention.qk_norm = true;
    project.config.data.eos_token_id = '\n';
    project.config.train.gradient_accumulation_steps = 2;
    project.config.log.param_grad_norms_interval = 1;
    ASSERT_EQ(project.train("kept"), system::Exit::ok);
    project.config.train.activation_checkpointing = ActivationCheckpointing::blocks;
    ASSERT_EQ(project.train("recomputed"), system::Exit::ok);
    EXPECT_EQ(measured(project / "kept"), measured(project / "recomputed")) << kind;
    const std::vector<Tensor> kept = trained(project.config, project / "kept"),
                              recomputed = trained(project.config, project / "recomputed");
    ASSERT_EQ(kept.size(), recomputed.size());
    for (size_t i = 0; i < kept.size(); ++i)
      EXPECT_TRUE(std::ranges::equal(kept[i].values(), recomputed[i].values())) << kind << i;
  }
}

/// Tests for each precision that this machine supports.
struct Precisions : testing::TestWithParam<std::string> {
  void SetUp() override {
    const std::string unsupported = unsupported_reason(from_string<Precision>(GetParam()).value());
    if (!unsupported.empty()) GTEST_SKIP() << test::kOtherHardware << unsupported;
  }
};

/// A project with one attention kind and precision.
struct Project : TinyProject {
  Project(const std::string& kind, const std::string& precision) : TinyProject(kind) {
    config = test::wider(config);
    config.train.steps = 4;
    config.train.precision = from_string<Precision>(precision).value();
  }
};

TEST_P(Precisions, give_the_same_bits_for_any_threads_with_and_without_recomputation) {
  for (const std::string kind : {"softmax", "diff_v1", "diff_v2"}) {
    Project tiny(kind, GetParam());
    ASSERT_EQ(tiny.train("1"), system::Exit::ok);
    const test::Threads two(2);
    ASSERT_EQ(tiny.train("2"), system::Exit::ok);
    tiny.config.train.activation_checkpointing = ActivationCheckpointing::blocks;
    ASSERT_EQ(tiny.train("recomputed"), system::Exit::ok);
    test::expect_the_same_run(tiny / "1", tiny / "2");
    EXPECT_EQ(measured(tiny / "1"), measured(tiny / "recomputed"));
  }
}

TEST_P(Precisions, change_the_loss_only_slightly) {
  Project tiny("diff_v2", GetParam());
  tiny.config.train.steps = 12;
  ASSERT_EQ(tiny.train("rounded"), system::Exit::ok);
  tiny.config.train.precision = Precision::full;
  ASSERT_EQ(tiny.train("full"), system::Exit::ok);
  const double rounded = test::losses(tiny / "rounded").back();
  const double full = test::losses(tiny / "full").back();
  EXPECT_NE(rounded, full);
  EXPECT_NEAR(rounded, full, 0.02 * full);
}

INSTANTIATE_TEST_SUITE_P(Words, Precisions, testing::Values("bf16", "bf16_emulated"),
                         [](const auto& word) { return word.param; });

TEST(Precision, below_full_is_rejected_by_the_double_precision_program_with_a_remedy) {
  const TinyProject tiny;
  const auto outcome =
      tiny.difftape({"train", "tiny.yaml", "--set", "train.precision=bf16_emulated"},
                    {.program = DIFFTAPE_TEST_PROGRAM_F64});
  EXPECT_EQ(outcome.exit, 78);
  EXPECT_THAT(outcome.err, HasSubstr("train.precision: bf16_emulated is not supported here"));
  EXPECT_THAT(outcome.err, HasSubstr("use full"));
}

TEST(Precision, bf16_without_instructions_is_rejected_with_a_remedy) {
  if (unsupported_reason(Precision::bf16).empty())
    GTEST_SKIP() << test::kOtherHardware << "this processor has AVX512-BF16";
  const TinyProject tiny;
  const auto outcome =
      tiny.difftape({"train", "tiny.yaml", "--set", "train.precision=bf16", "--out", "run"});
  EXPECT_EQ(outcome.exit, 78);
  EXPECT_THAT(outcome.err, HasSubstr("no AVX512-BF16"));
  EXPECT_THAT(outcome.err, HasSubstr("use full or bf16_emulated"));
  EXPECT_FALSE(std::filesystem::exists(tiny / "run"));
}

}  // namespace
}  // namespace difftape::run
