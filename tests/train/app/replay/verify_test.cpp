// A run trained again is the recorded run, or the first step and tensor that differs is named.
#include "train/app/replay/verify.h"

#include "core/error.h"
#include "tests/train/run/loop/tiny.h"
#include "train/run/loop/state_digest.h"
#include "train/run/records/digests.h"
#include "train/run/records/h5.h"

namespace difftape::app {
namespace {

using test::contents;
using test::TinyProject;
using testing::AllOf;
using testing::HasSubstr;

const std::vector<Index> kThreads{1, 2, 3, 4, 16};

/// A run of two steps, wide enough that every kernel cuts its work into blocks, with digests.
struct TwoSteps : TinyProject {
  explicit TwoSteps(const std::string& kind) : TinyProject(kind) {
    config = test::wider(config);
    config.train.steps = 2;
    config.optim.warmup_steps = 1;
    config.train.eval_interval = 2;
    config.log.digest = true;
    save();
  }
};

class VerifyEvery : public testing::TestWithParam<std::string> {};

TEST_P(VerifyEvery, kind_and_precision_has_the_same_bits_with_1_2_3_4_and_16_threads) {
  for (const auto& [name, precision] : kNames<Precision>) {
    SCOPED_TRACE(name);
    if (!unsupported_reason(precision).empty()) continue;
    TwoSteps project(GetParam());
    project.config.train.precision = precision;
    ASSERT_EQ(project.train("run"), system::Exit::ok);
    const Verification found = verify_run(project / "run", {kThreads, 0});
    EXPECT_TRUE(found.equal()) << to_text(found);
    EXPECT_EQ(found.digests, 2);
    EXPECT_EQ(found.checkpoints, 1);
    ASSERT_EQ(found.passes.size(), kThreads.size());
    for (std::size_t i = 0; i < kThreads.size(); ++i) {
      EXPECT_EQ(found.passes[i].threads, kThreads[i]);
      EXPECT_EQ(found.passes[i].steps, 2);
      EXPECT_EQ(found.passes[i].digest, found.passes[0].digest);
    }
  }
}

TEST_P(VerifyEvery, kind_has_the_same_bits_in_double_precision) {
  TwoSteps project(GetParam());
  const test::Conditions f64{.program = DIFFTAPE_TEST_PROGRAM_F64};
  ASSERT_EQ(project.difftape({"train", "tiny.yaml", "--out", "run"}, f64).exit, 0);
  const auto outcome = project.difftape({"verify", "run", "--threads", "1,2,3,4,16"}, f64);
  EXPECT_EQ(outcome.exit, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\nequal bit for bit\n"));
}

INSTANTIATE_TEST_SUITE_P(Attention, VerifyEvery, testing::ValuesIn(attention_kinds()),
                         [](const auto& kind) { return kind.param; });

/// A run of twelve steps with a checkpoint after six of them.
class Verify : public testing::Test {
 protected:
  Verify() {
    project.config.train.checkpoint_interval = 6;
    project.config.log.param_grad_norms_interval = 1;
    project.config.log.digest = true;
    project.save();
  }
  void train() { ASSERT_EQ(project.train("run"), system::Exit::ok); }
  std::filesystem::path run() const { return project / "run"; }

  /// Replaces a text that is in a file of the run once.
  void forge(const std::string& file, const std::string& what, const std::string& with) {
    std::string text = contents(run() / file);
    const std::size_t at = text.find(what);
    ASSERT_NE(at, std::string::npos);
    test::put(run() / file, text.replace(at, what.size(), with));
  }

  TinyProject project{"diff_v2"};
};

TEST_F(Verify, names_the_first_step_and_tensor_that_differs) {
  train();
  run::TrainState state(project.config);
  const std::vector<std::string> names = run::state_tensors(state);
  auto digests = run::read_digests(run() / run::kDigestsFile);
  ASSERT_EQ(digests.size(), 12u);
  ASSERT_EQ(digests.at(7).tensors.size(), names.size());
  const std::string was = digests.at(7).tensors[3];
  forge(run::kDigestsFile, was, "0123456789abcdef");
  forge(run::kDigestsFile, digests.at(7).state, std::string(32, '0'));
  const Verification found = verify_run(run());
  EXPECT_FALSE(found.equal());
  ASSERT_TRUE(found.passes.at(0).difference);
  const Difference& first = *found.passes[0].difference;
  EXPECT_EQ(first.step, 7);
  EXPECT_EQ(first.what, names[3]);
  EXPECT_EQ(first.recorded, "0123456789abcdef");
  EXPECT_EQ(first.now, was);
  const auto outcome = project.difftape({"verify", "run"});
  EXPECT_EQ(outcome.exit, 1);
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("step 7: " + names[3] + " is " + was + ", was 0123456789abcdef\n"),
                    HasSubstr("not equal\n")));
}

TEST_F(Verify, compares_metrics_and_checkpoints_of_a_run_without_digests) {
  project.config.log.digest = false;
  train();
  EXPECT_TRUE(verify_run(run(), {{1, 2}, 0}).equal());
  const auto checkpoint = run() / "checkpoints" / run::step_file_name(6);
  run::TrainState state(project.config);
  state.restore(checkpoint);
  for (Parameter& p : state.model.parameters()) {
    if (p.name == "model.norm.weight") p.value.data()[1] += real(1e-6);
  }
  state.save(run() / "checkpoints");
  Difference found = verify_run(run()).passes.at(0).difference.value();
  EXPECT_EQ(found.step, 6);
  EXPECT_EQ(found.what, "model/model.norm.weight");
  std::filesystem::remove_all(run() / "checkpoints");
  const double loss = test::metrics_lines(run())[8]["train/loss"];
  forge("metrics.jsonl", fmt::format("\"train/loss\":{}", loss), "\"train/loss\":2.5");
  found = verify_run(run()).passes.at(0).difference.value();
  EXPECT_EQ(found.step, 9);
  EXPECT_EQ(found.what, "train/loss");
  EXPECT_EQ(found.recorded, "2.5");
  EXPECT_EQ(found.now, run::number_text(loss));
}

TEST_F(Verify, begins_at_a_checkpoint) {
  train();
  const Verification found = verify_run(run(), {{}, 7});
  EXPECT_TRUE(found.equal()) << to_text(found);
  EXPECT_EQ(found.origin, "checkpoints/step-00000006.h5");
  EXPECT_EQ(found.passes.at(0).steps, 6);
  EXPECT_THAT(
      [&] {
        verify_run(run(), {{}, 12});
      },
      testing::ThrowsMessage<UsageError>(HasSubstr("has steps after 0 to 11")));
  EXPECT_THAT(
      [&] {
        verify_run(run(), {{0}, 0});
      },
      testing::ThrowsMessage<UsageError>("--threads 0: need numbers from 1 to 1024"));
}

TEST_F(Verify, holds_for_a_run_that_was_resumed_and_made_longer) {
  project.config.optim.schedule = ScheduleKind::constant;
  train();
  project.config.train.steps = 17;
  ASSERT_EQ(project.train("run", true), system::Exit::ok);
  const Verification found = verify_run(run());
  EXPECT_TRUE(found.equal()) << to_text(found);
  EXPECT_EQ(found.passes.at(0).steps, 17);
}

TEST_F(Verify, holds_for_a_run_that_diverged) {
  project.config.optim.lr = 1e30;
  project.config.optim.max_grad_norm = 0;
  project.config.optim.warmup_steps = 0;
  ASSERT_EQ(project.train("run"), system::Exit::diverged);
  const Verification found = verify_run(run());
  EXPECT_TRUE(found.equal()) << to_text(found);
}

TEST_F(Verify, digests_change_no_bit_and_follow_a_resume) {
  train();
  project.config.log.digest = false;
  ASSERT_EQ(project.train("plain"), system::Exit::ok);
  EXPECT_EQ(test::measured(run()), test::measured(project / "plain"));
  const std::string whole = contents(run() / run::kDigestsFile);
  test::put(run() / "checkpoints/latest", run::step_file_name(6) + "\n");
  test::put(run() / run::kDigestsFile, whole + "{\"step\":13,\"sta");
  project.config.log.digest = true;
  ASSERT_EQ(project.train("run", true), system::Exit::ok);
  EXPECT_EQ(contents(run() / run::kDigestsFile), whole);
  ASSERT_EQ(project.difftape({"train", "tiny.yaml", "--out", "again", "--digest"}).exit, 0);
  EXPECT_EQ(contents(project / "again/digests.jsonl"), whole);
}

TEST_F(Verify, refuses_digests_that_are_none) {
  train();
  test::put(run() / run::kDigestsFile, "{\"step\":1}\n");
  EXPECT_THAT([&] { verify_run(run()); }, testing::ThrowsMessage<DataError>(
                                              HasSubstr("digests.jsonl:1: not a line of digests")));
}

}  // namespace
}  // namespace difftape::app
