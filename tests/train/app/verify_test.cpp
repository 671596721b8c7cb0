// Verifies runs: equal ones, and ones that differ in a step or tensor.
#include "train/app/verify.h"

#include "tests/train/run/loop/tiny.h"
#include "train/run/loop/train_state.h"

namespace difftape::app {
namespace {

const std::vector<Index> kThreads{1, 2, 3, 4, 16};

/// A run of two steps, wide enough that every kernel splits its work into blocks.
struct TwoSteps : TinyProject {
  explicit TwoSteps(const std::string& kind) : TinyProject(kind) {
    config = test::wider(config);
    config.train.steps = 2;
    config.optim.warmup_steps = 1;
    config.train.eval_interval = 2;
    save();
  }
};

struct VerifyEvery : testing::TestWithParam<std::string> {};

TEST_P(VerifyEvery, kind_and_precision_has_the_same_bits_with_1_2_3_4_and_16_threads) {
  for (const auto& [name, precision] : kNames<Precision>) {
    SCOPED_TRACE(name);
    if (!unsupported_reason(precision).empty()) continue;
    TwoSteps project(GetParam());
    project.config.train.precision = precision;
    ASSERT_EQ(project.train("run"), system::Exit::ok);
    const Verification found = verify_run(project / "run", kThreads);
    EXPECT_TRUE(found.equal()) << to_text(found);
    EXPECT_EQ(found.checkpoints, 1);
    ASSERT_EQ(found.passes.size(), kThreads.size());
    for (std::size_t i = 0; i < kThreads.size(); ++i)
      EXPECT_EQ(found.passes[i].threads, kThreads[i]);
    EXPECT_EQ(found.steps, 2);
  }
}

TEST_P(VerifyEvery, kind_has_the_same_bits_in_double_precision) {
  TwoSteps project(GetParam());
  const test::Conditions f64{.program = DIFFTAPE_TEST_PROGRAM_F64};
  ASSERT_EQ(project.difftape({"train", "tiny.yaml", "--out", "run"}, f64).exit, 0);
  const auto outcome = project.difftape({"verify", "run", "--threads", "1,2,3,4,16"}, f64);
  EXPECT_EQ(outcome.exit, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\nbitwise equal\n"));
}

INSTANTIATE_TEST_SUITE_P(Attention, VerifyEvery, testing::ValuesIn(attention_kinds()),
                         [](const auto& kind) { return kind.param; });

/// A run of twelve steps with a checkpoint after six of them.
struct Verify : testing::Test {
  Verify() {
    project.config.train.checkpoint_interval = 6;
    project.config.log.param_grad_norms_interval = 1;
    project.save();
  }
  void train() { ASSERT_EQ(project.train("run"), system::Exit::ok); }
  fs::path run() const { return project / "run"; }

  /// Replaces a string that occurs once in a file of the run.
  void forge(const std::string& file, const std::string& what, const std::string& with) {
    std::string text = contents(run() / file);
    const std::size_t at = text.find(what);
    ASSERT_NE(at, std::string::npos);
    put(run() / file, text.replace(at, what.size(), with));
  }

  TinyProject project{"diff_v2"};
};

TEST_F(Verify, names_the_first_step_and_number_that_differs) {
  train();
  EXPECT_TRUE(verify_run(run(), {1, 2}).equal());
  const auto difference = [&] { return verify_run(run()).passes.at(0).difference; };
  const double norm = metrics_lines(run())[9]["optim/grad_norm/lm_head.weight"];
  forge("metrics.jsonl", fmt::format("\"optim/grad_norm/lm_head.weight\":{}", norm),
        "\"optim/grad_norm/lm_head.weight\":2.5");
  EXPECT_EQ(difference(),
            fmt::format("step 10: optim/grad_norm/lm_head.weight is {}, was 2.5", norm));
  const double loss = metrics_lines(run())[8]["train/loss"];
  forge("metrics.jsonl", fmt::format("\"train/loss\":{}", loss), "\"train/loss\":2.5");
  EXPECT_EQ(difference(), fmt::format("step 9: train/loss is {}, was 2.5", loss));
  const auto outcome = project.difftape({"verify", "run"});
  EXPECT_EQ(outcome.exit, 1);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("step 9: train/loss is "), EndsWith("not equal\n")));
}

TEST_F(Verify, names_the_checkpoint_that_differs) {
  train();
  run::TrainState state(project.config);
  state.restore(run() / "checkpoints" / run::step_file_name(6));
  for (Parameter& p : state.model.parameters())
    if (p.name == "model.norm.weight") p.value.data()[1] = real(1.5);
  state.save(run() / "checkpoints");
  EXPECT_EQ(verify_run(run()).passes.at(0).difference,
            "step 6: the bytes of checkpoints/step-00000006.h5 differ");
}

TEST_F(Verify, names_a_metric_that_only_one_of_them_logged) {
  train();
  forge("metrics.jsonl", "\"val/loss\"", "\"val/lost\"");
  EXPECT_EQ(verify_run(run()).passes.at(0).difference, "val/lost was logged, and is not");
}

TEST_F(Verify, rejects_an_invalid_number_of_threads) {
  train();
  EXPECT_THAT([&] { verify_run(run(), {0}); },
              ThrowsMessage<UsageError>("--threads 0: must be from 1 to 1024"));
}

TEST_F(Verify, accepts_a_resumed_and_extended_run) {
  project.config.optim.schedule = ScheduleKind::constant;
  train();
  project.config.train.steps = 17;
  ASSERT_EQ(project.train("run", true), system::Exit::ok);
  const Verification found = verify_run(run());
  EXPECT_TRUE(found.equal()) << to_text(found);
  EXPECT_EQ(found.steps, 17);
}

TEST_F(Verify, accepts_a_diverged_run) {
  project.config = test::explosive(project.config);
  ASSERT_EQ(project.train("run"), system::Exit::diverged);
  const Verification found = verify_run(run());
  EXPECT_TRUE(found.equal()) << to_text(found);
}

}  // namespace
}  // namespace difftape::app
