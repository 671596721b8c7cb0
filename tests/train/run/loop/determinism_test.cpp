// The same configuration and seed gives the same bits, whatever the number of threads.
#include "core/parallel.h"
#include "tests/train/run/loop/tiny.h"
#include "train/run/inference/model.h"
#include "train/system/json.h"

namespace difftape::run {
namespace {

using test::measured;
using test::TinyProject;

class Determinism : public testing::TestWithParam<std::string> {};

TEST_P(Determinism, metrics_and_checkpoint_are_bitwise_equal_for_1_2_and_4_threads) {
  TinyProject project(GetParam());
  project.config.train.steps = 4;
  project.config.log.param_grad_norms_interval = 1;
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
    const auto env = system::parse_json(test::contents(project / (threads + "/env.json")));
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

TEST(FlushSubnormals, is_what_the_key_says_while_a_run_trains_and_is_recorded) {
  for (const bool flush : {true, false}) {
    TinyProject project("diff_v2");
    project.config.train.flush_subnormals = flush;
    ASSERT_EQ(project.train("run"), system::Exit::ok);
    EXPECT_FALSE(flushes_subnormals());
    const auto env = nlohmann::json::parse(test::contents(project / "run/env.json"));
    const bool single = std::is_same_v<real, float>;
    EXPECT_EQ(env["machine"]["flushes_subnormals"], flush && single);
  }
}

TEST(Engine, is_recorded_and_no_run_goes_on_with_another) {
  if (!unsupported_reason(Engine::portable).empty()) GTEST_SKIP() << "no fused multiply-add";
  const std::string before = gemm_backend();
  TinyProject project;
  project.config.train.gemm = Engine::portable;
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  EXPECT_EQ(gemm_backend(), before);
  const auto env = system::parse_json(test::contents(project / "run/env.json"));
  EXPECT_EQ(env["build"]["gemm_backend"], "portable");
  {
    const NamedModel named = open_model(project / "run");
    EXPECT_STREQ(gemm_backend(), "portable") << "of eval, generate and export too";
  }
  EXPECT_EQ(gemm_backend(), before);
  const auto resumed = project.difftape(
      {"train", "run", "--resume", "--set", "train.gemm=auto", "--set", "train.steps=20"});
  EXPECT_EQ(resumed.exit, 78);
  EXPECT_THAT(resumed.err, testing::HasSubstr("train.gemm"));
}

TEST(Engine, of_bfloat16_units_cannot_be_portable) {
  TinyProject project;
  const auto outcome = project.difftape(
      {"train", "tiny.yaml", "--set", "train.gemm=portable", "--set", "train.precision=bf16"});
  EXPECT_EQ(outcome.exit, 78);
  EXPECT_THAT(outcome.err, testing::HasSubstr("train."));
}

INSTANTIATE_TEST_SUITE_P(Attention, Determinism, testing::ValuesIn(attention_kinds()),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace difftape::run
