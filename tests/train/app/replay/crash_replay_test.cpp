// Repeats a diverged step from its crash dump.
#include "train/app/replay/replay.h"

#include "tests/train/run/loop/tiny.h"
#include "train/run/records/run_files.h"

namespace difftape::app {
namespace {

constexpr const char* kDump = "run/diverged/step-00000002.h5";

/// A run whose second step is not finite, because the first one blows up the weights.
struct CrashDumpOf : testing::Test {
  explicit CrashDumpOf(const std::string& kind = "softmax") : project(kind) {
    project.config = test::explosive(project.config);
  }

  void diverge() {
    project.save();
    ASSERT_EQ(project.train("run"), system::Exit::diverged);
  }
  Outcome replay(const std::string& where = kDump) { return project.difftape({"replay", where}); }

  TinyProject project;
};

TEST_F(CrashDumpOf, a_diverged_step_is_bitwise_reproduced_without_the_data) {
  project.config.train.gradient_accumulation_steps = 2;
  diverge();
  fs::remove(project / "text.txt");
  const CrashReplay replay = replay_crash(project / kDump);
  EXPECT_TRUE(replay.identical()) << to_text(replay);
  EXPECT_EQ(replay.recorded.op, run::read_status(project / "run").diverged->op);
  EXPECT_EQ(replay.now.op, replay.recorded.op);
  EXPECT_EQ(replay.now.parameter, "lm_head.weight");
  ASSERT_EQ(replay.numbers.size(), 2 + LanguageModel(project.config.model).parameters().size());
  EXPECT_EQ(replay.numbers[0].name, "loss");
  EXPECT_FALSE(std::isfinite(replay.numbers[0].now));
}

TEST_F(CrashDumpOf, every_attention_kind_repeats) {
  for (const std::string& kind : attention_kinds()) {
    TinyProject other(kind);
    other.config.optim = project.config.optim;
    other.config.train.eval_interval = 0;
    ASSERT_EQ(other.train("run"), system::Exit::diverged);
    EXPECT_TRUE(replay_crash(other / kDump).identical()) << kind;
  }
}

TEST_F(CrashDumpOf, a_validation_with_a_smaller_last_batch_repeats) {
  put(project / "val.txt", test::tiny_text().substr(0, 3 * 17));
  project.config.data.val_path = {(project / "val.txt").string()};
  project.config.train.eval_batches = 2;
  project.config.train.eval_interval = 1;
  diverge();
  const run::CrashDump dump = run::read_crash_dump(project / "run/diverged/step-00000001.h5");
  ASSERT_EQ(dump.batches.size(), 2u);
  EXPECT_EQ(dump.batches[0].batch, 2);
  EXPECT_EQ(dump.batches[1].batch, 1);
  const CrashReplay replay = replay_crash(project / "run/diverged/step-00000001.h5");
  EXPECT_TRUE(replay.identical()) << to_text(replay);
}

TEST_F(CrashDumpOf, a_validation_repeats) {
  project.config.train.eval_interval = 1;
  diverge();
  fs::remove(project / "text.txt");
  const CrashReplay replay = replay_crash(project / "run/diverged/step-00000001.h5");
  EXPECT_TRUE(replay.identical()) << to_text(replay);
  EXPECT_EQ(replay.recorded.quantity, "val/loss");
  ASSERT_EQ(replay.numbers.size(), 1u);
  EXPECT_FALSE(std::isfinite(replay.numbers[0].now));
}

TEST_F(CrashDumpOf, the_last_validation_contains_all_of_its_batches) {
  project.config.train.steps = 1;
  project.config.train.eval_batches = 1;
  diverge();
  const Index held_out = run::TrainState(project.config).data->val_batches();
  ASSERT_GT(held_out, 1);
  fs::remove(project / "text.txt");
  const fs::path dump = project / "run/diverged/step-00000001.h5";
  EXPECT_EQ(std::ssize(run::read_crash_dump(dump).batches), held_out);
  const CrashReplay replay = replay_crash(dump);
  EXPECT_EQ(replay.recorded.quantity, "val/loss");
  EXPECT_TRUE(replay.identical()) << to_text(replay);
}

TEST_F(CrashDumpOf, a_step_is_also_a_checkpoint_of_the_state_before_it) {
  project.config.train.checkpoint_interval = 1;
  diverge();
  LanguageModel dumped(project.config.model), saved(project.config.model);
  dumped.parameters().initialize(5);
  saved.parameters().initialize(6);
  const run::Checkpoint dump(project / kDump);
  EXPECT_EQ(dump.meta().step, 1);
  dump.load(dumped.parameters(), nullptr);
  run::Checkpoint(project / "run/checkpoints/step-00000001.h5").load(saved.parameters(), nullptr);
  for (const Parameter& p : dumped.parameters()) {
    const auto other = saved.parameters().find(p.name)->value.values();
    EXPECT_TRUE(std::ranges::equal(p.value.values(), other)) << p.name;
  }
}

TEST_F(CrashDumpOf, a_step_is_replayed_by_the_program_with_exit_code_0) {
  diverge();
  const auto outcome = replay();
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out,
              StartsWith(std::string(kDump) + ": step 2 of tiny, train/loss was not finite\n"));
  EXPECT_THAT(outcome.out, HasSubstr("grad_norm/lm_head.weight"));
  EXPECT_THAT(outcome.out,
              HasSubstr("first op that is not finite: " +
                        run::read_status(project / "run").diverged->op + ", as recorded\n"));
  EXPECT_THAT(outcome.out, HasSubstr("first parameter that is not finite: lm_head.weight, as "
                                     "recorded\n"));
  EXPECT_THAT(outcome.out, EndsWith("identical: the step is bitwise reproduced\n"));
}

TEST_F(CrashDumpOf, another_result_is_exit_code_1) {
  // Rewrites the crash dump with a wrong norm, as another rounding would.
  diverge();
  run::TrainState state(project.config);
  run::Step step = train_step(state);
  step.diverged = run::Divergence{1, "train/loss", "", ""};
  run::TrainState before(project.config);
  step.norms.per_parameter[3] = std::nextafter(step.norms.per_parameter[3], 1e9);
  write_crash_dump(project / "other", before, step);
  const auto outcome = replay("other/diverged/step-00000001.h5");
  EXPECT_EQ(outcome.exit, 1) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("DIFFERENT"));
  EXPECT_THAT(outcome.out, EndsWith("not identical; use the build and processor of the run\n"));
  std::size_t different = 0;
  for (const Repeated& n : replay_crash(project / "other/diverged/step-00000001.h5").numbers)
    different += n.recorded == n.now ? 0 : 1;
  EXPECT_EQ(different, 1u) << "the one that was changed";
}

TEST_F(CrashDumpOf, invalid_dumps_are_reported) {
  project.config.train.checkpoint_interval = 1;
  diverge();
  const auto error = [&](const std::string& where, int exit) {
    const auto outcome = replay(where);
    EXPECT_EQ(outcome.exit, exit) << where;
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  EXPECT_EQ(error("gone.h5", 66),
            "difftape: cannot read checkpoint gone.h5: No such file or directory\n");
  EXPECT_EQ(error("run/checkpoints/step-00000001.h5", 65),
            "difftape: run/checkpoints/step-00000001.h5: is a checkpoint, but must be a crash "
            "dump; give a run directory, or a file in the folder diverged/ of a diverged run\n");
  std::string damaged = contents(project / kDump);
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 1);
  put(project / "damaged.h5", damaged);
  EXPECT_THAT(error("damaged.h5", 65), HasSubstr("damaged.h5 is damaged"));
  EXPECT_EQ(test::error(64, project.difftape({"replay", kDump, "--step", "2"})),
            "difftape: --step, --batches and --states need a run directory, but "
            "run/diverged/step-00000002.h5 is not one; remove them\n");
  EXPECT_THAT(
      test::error(65, project.difftape({"replay", kDump}, {.program = DIFFTAPE_TEST_PROGRAM_F64})),
      HasSubstr("was made in f32, but this program computes in f64"));
}

}  // namespace
}  // namespace difftape::app
