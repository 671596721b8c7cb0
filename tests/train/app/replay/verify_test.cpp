// Verifies runs: equal ones, and ones that differ in a step or tensor.
#include "train/app/replay/verify.h"

#include "tests/train/run/loop/tiny.h"
#include "train/run/loop/train_state.h"
#include "train/system/number.h"

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
    const Verification found = verify_run(project / "run", {kThreads, 0});
    EXPECT_TRUE(found.equal()) << to_text(found);
    EXPECT_EQ(found.checkpoints, 1);
    ASSERT_EQ(found.passes.size(), kThreads.size());
    for (std::size_t i = 0; i < kThreads.size(); ++i) {
      EXPECT_EQ(found.passes[i].threads, kThreads[i]);
      EXPECT_EQ(found.passes[i].steps, 2);
    }
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
  EXPECT_TRUE(verify_run(run(), {{1, 2}, 0}).equal());
  const auto difference = [&] { return verify_run(run()).passes.at(0).difference.value(); };
  const auto lines = metrics_lines(run());
  const double norm = lines[9]["optim/grad_norm/lm_head.weight"];
  forge("metrics.jsonl", fmt::format("\"optim/grad_norm/lm_head.weight\":{}", norm),
        "\"optim/grad_norm/lm_head.weight\":2.5");
  Difference found = difference();
  EXPECT_EQ(found.step, 10) << "of what shows when all steps are compared";
  EXPECT_EQ(found.what, "optim/grad_norm/lm_head.weight");
  EXPECT_EQ(found.recorded, "2.5");
  EXPECT_EQ(found.now, system::json_number(norm));
  const double loss = lines[8]["train/loss"];
  forge("metrics.jsonl", fmt::format("\"train/loss\":{}", loss), "\"train/loss\":2.5");
  found = difference();
  EXPECT_EQ(found.step, 9);
  EXPECT_EQ(found.what, "train/loss");
  const auto checkpoint = run() / "checkpoints" / run::step_file_name(6);
  run::TrainState state(project.config);
  state.restore(checkpoint);
  for (Parameter& p : state.model.parameters())
    if (p.name == "model.norm.weight") p.value.data()[1] = real(1.5);
  state.save(run() / "checkpoints");
  found = difference();
  EXPECT_EQ(found.step, 6);
  EXPECT_EQ(found.what, "model/model.norm.weight[1]");
  EXPECT_EQ(found.recorded, "1.5");
  const auto outcome = project.difftape({"verify", "run"});
  EXPECT_EQ(outcome.exit, 1);
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("step 6: model/model.norm.weight[1] is " + found.now + ", was 1.5\n"),
                    HasSubstr("not equal\n")));
}

TEST_F(Verify, names_a_metric_that_only_one_of_them_logged) {
  train();
  forge("metrics.jsonl", "\"val/loss\"", "\"val/lost\"");
  const Difference found = verify_run(run()).passes.at(0).difference.value();
  EXPECT_EQ(found.step, 5);
  EXPECT_EQ(found.what, "val/lost");
  EXPECT_EQ(found.now, "-");
}

TEST_F(Verify, starts_at_a_checkpoint) {
  train();
  const Verification found = verify_run(run(), {{}, 7});
  EXPECT_TRUE(found.equal()) << to_text(found);
  EXPECT_EQ(found.origin, "checkpoints/step-00000006.h5");
  EXPECT_EQ(found.passes.at(0).steps, 6);
  EXPECT_THAT(
      [&] {
        verify_run(run(), {{}, 12});
      },
      ThrowsMessage<UsageError>(HasSubstr(", from 0 to 11")));
  EXPECT_THAT(
      [&] {
        verify_run(run(), {{0}, 0});
      },
      ThrowsMessage<UsageError>("--threads 0: must be from 1 to 1024"));
}

TEST_F(Verify, accepts_a_resumed_and_extended_run) {
  project.config.optim.schedule = ScheduleKind::constant;
  train();
  project.config.train.steps = 17;
  ASSERT_EQ(project.train("run", true), system::Exit::ok);
  const Verification found = verify_run(run());
  EXPECT_TRUE(found.equal()) << to_text(found);
  EXPECT_EQ(found.passes.at(0).steps, 17);
}

TEST_F(Verify, accepts_a_diverged_run) {
  project.config = test::explosive(project.config);
  ASSERT_EQ(project.train("run"), system::Exit::diverged);
  const Verification found = verify_run(run());
  EXPECT_TRUE(found.equal()) << to_text(found);
}

}  // namespace
}  // namespace difftape::app
