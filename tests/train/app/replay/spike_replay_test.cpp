// Replays a spike with other batches and other states.
#include "train/app/replay/replay.h"

#include "tests/train/run/loop/tiny.h"
#include "train/run/records/metrics.h"
#include "train/run/records/run_files.h"
#include "train/run/records/spike_records.h"

namespace difftape::app {
namespace {

TEST(CauseOf, follows_the_fractions_of_other_spikes) {
  EXPECT_EQ(cause_of(6, 0, 3, 3), Cause::batch);
  EXPECT_EQ(cause_of(6, 2, 3, 2), Cause::batch);
  EXPECT_EQ(cause_of(6, 6, 3, 0), Cause::state);
  EXPECT_EQ(cause_of(6, 4, 3, 1), Cause::state);
  EXPECT_EQ(cause_of(6, 0, 3, 0), Cause::both);
  EXPECT_EQ(cause_of(6, 6, 3, 3), Cause::inconclusive);
  EXPECT_EQ(cause_of(6, 3, 3, 0), Cause::inconclusive);
  EXPECT_EQ(cause_of(2, 1, 2, 1), Cause::inconclusive);
  EXPECT_EQ(cause_of(0, 0, 3, 3), Cause::inconclusive);
  EXPECT_EQ(cause_of(6, 0, 0, 0), Cause::inconclusive);
}

/// Returns every file of a directory with its contents.
std::map<std::string, std::string> everything(const fs::path& dir) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(dir))
    if (entry.is_regular_file()) files[entry.path()] = contents(entry.path());
  return files;
}

/// Returns words with one passage of noise, which few batches contain.
struct Spike : testing::Test {
  Spike() {
    std::string text = test::tiny_text() + test::tiny_text();
    const RandomStream stream(3, "noise");
    for (std::uint64_t i = 0; i < 120; ++i)
      text[6000 + i] = static_cast<char>(128 + stream.below(i, 128));
    put(project / "text.txt", text);
    project.config.train.steps = 150;
    project.config.train.eval_interval = 0;
    project.config.train.checkpoint_interval = 20;
    project.config.log.spike_rule = stats::SpikeDefinition::olmo2;
    project.config.log.spike_min_history = 20;
    project.config.log.spike_threshold = 4;
    project.save();
  }
  void run_it() { ASSERT_EQ(project.train("run"), system::Exit::ok); }

  TinyProject project;
};

TEST_F(Spike, from_a_batch_of_noise_is_attributed_to_the_batch) {
  run_it();
  const RecordedRun run = open_recorded(project / "run");
  const auto records = spike_records(run.metrics, run.rule);
  ASSERT_FALSE(records.empty());
  const auto before = everything(project / "run");
  const SpikeReplay replay = replay_spike(project / "run");
  EXPECT_EQ(everything(project / "run"), before) << "nothing is written into the run";
  EXPECT_FALSE(replay.mismatch);
  EXPECT_EQ(replay.step, std::ranges::max_element(records, {}, run::size_of)->step);
  EXPECT_EQ(replay.cause, Cause::batch) << to_text(replay);
  EXPECT_EQ(replay.other_batches, 6);
  EXPECT_EQ(replay.earlier_states, 3);
  EXPECT_EQ(replay.trials.size(), 10u);
  EXPECT_LT(replay.retrained, 24) << "from the checkpoint before";
  EXPECT_THAT(replay.origin, StartsWith("checkpoints/step-"));
  const ReplayTrial& own = replay.trials.front();
  EXPECT_EQ(own.loss, run.logged("train/loss", replay.step));
  EXPECT_EQ(own.grad_norm, run.logged("optim/grad_norm", replay.step));
  EXPECT_TRUE(own.loss_verdict.spike || own.grad_verdict.spike);
}

TEST_F(Spike, is_the_same_from_the_initial_weights_as_from_a_checkpoint) {
  run_it();
  const SpikeReplay near = replay_spike(project / "run");
  fs::remove_all(project / "run/checkpoints");
  const SpikeReplay far = replay_spike(project / "run");
  EXPECT_EQ(far.origin, "the initial weights");
  EXPECT_GT(far.retrained, near.retrained);
  ASSERT_EQ(near.trials.size(), far.trials.size());
  for (std::size_t i = 0; i < near.trials.size(); ++i) {
    EXPECT_EQ(near.trials[i].loss, far.trials[i].loss);
    EXPECT_EQ(near.trials[i].grad_norm, far.trials[i].grad_norm);
  }
}

// Large batches of plain text are similar, so the state of the weights causes the spike. The step
// of the spike depends on the last bit of every product, so one of several runs must show it.
TEST_F(Spike, from_a_rate_that_is_too_large_is_attributed_to_the_state) {
  put(project / "text.txt", test::tiny_text());
  project.config.data.batch_size = 64;
  project.config.optim = {.lr = 0.4,
                          .min_lr = 0.4,
                          .schedule = ScheduleKind::constant,
                          .warmup_steps = 0,
                          .betas = {0.9, 0.9999},
                          .max_grad_norm = 0};
  project.config.train.steps = 110;
  int states = 0;
  for (const std::uint64_t seed : {1, 2, 3}) {
    project.config.run.seed = seed;
    const std::string out = fmt::format("run{}", seed);
    ASSERT_EQ(project.train(out), system::Exit::ok);
    const RecordedRun run = open_recorded(project / out);
    if (spike_records(run.metrics, run.rule).empty()) continue;
    const SpikeReplay replay = replay_spike(project / out);
    EXPECT_FALSE(replay.mismatch);
    EXPECT_NE(replay.cause, Cause::batch) << to_text(replay);
    states += replay.cause == Cause::state ? 1 : 0;
  }
  EXPECT_GT(states, 0);
}

TEST_F(Spike, is_tried_with_the_requested_batches_and_states) {
  run_it();
  const SpikeReplay replay = replay_spike(
      project / "run", {.step = 30, .batches = {-30, 2, 200}, .states = {-40, -29, 0, 2, 500}});
  std::vector<std::pair<Index, Index>> met;
  for (const ReplayTrial& e : replay.trials) met.emplace_back(e.state, e.batch);
  EXPECT_EQ(met, (std::vector<std::pair<Index, Index>>{
                     {30, 30}, {1, 30}, {30, 32}, {30, 230}, {32, 30}}));
  EXPECT_EQ(replay.retrained, 31);
  EXPECT_FALSE(replay.mismatch);
  EXPECT_EQ(replay.earlier_states, 1) << "later ones do not count";
  EXPECT_THAT(to_text(replay), HasSubstr("inconclusive: step 30 is not a spike by the rule olmo2"));
}

TEST_F(Spike, of_a_run_that_diverged_is_its_divergence) {
  project.config = test::explosive(project.config);
  ASSERT_EQ(project.train("run"), system::Exit::diverged);
  const SpikeReplay replay = replay_spike(project / "run");
  EXPECT_EQ(replay.step, 2);
  EXPECT_FALSE(replay.mismatch);
  EXPECT_EQ(replay.cause, Cause::state) << to_text(replay);
}

TEST_F(Spike, is_replayed_by_the_program) {
  run_it();
  const auto outcome = project.difftape({"replay", "run", "--batches", "-2,-1,1,2"});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, MatchesRegex("run, step [0-9]+: from checkpoints/step-[0-9]+.h5, "
                                        "[0-9]+ steps? repeated bit for bit\n(.|\n)*"));
  EXPECT_THAT(outcome.out,
              HasSubstr("cause: the batch\n  0 of 4 other batches on the state of step"));
  EXPECT_THAT(outcome.out, HasSubstr("  on 3 of 3 earlier states the batch of step"));
}

TEST_F(Spike, with_a_changed_log_is_exit_code_1) {
  run_it();
  const SpikeReplay sound = replay_spike(project / "run");
  std::string metrics = contents(project / "run/metrics.jsonl");
  const std::string line = fmt::format("\"step\":{},\"train/loss\":", sound.step - 1);
  metrics.insert(metrics.find(line) + line.size(), "1");
  put(project / "run/metrics.jsonl", metrics);
  const auto outcome = project.difftape({"replay", "run", "--step", fmt::format("{}", sound.step)});
  EXPECT_EQ(outcome.exit, 1) << outcome.err;
  EXPECT_THAT(outcome.out,
              HasSubstr(fmt::format("not identical: train/loss of step {} is ", sound.step - 1)));
  EXPECT_THAT(outcome.out, Not(HasSubstr("cause:")));
}

TEST_F(Spike, that_cannot_be_replayed_is_reported) {
  run_it();
  const auto error = [&](std::vector<std::string> words, int exit,
                         test::Conditions conditions = {}) {
    words.insert(words.begin(), "replay");
    const auto outcome = project.difftape(words, std::move(conditions));
    EXPECT_EQ(outcome.exit, exit) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  EXPECT_EQ(error({"run", "--step", "151"}, 64),
            "difftape: --step 151: must be a step of run, from 1 to 150\n");
  EXPECT_EQ(error({"run", "--step", "0"}, 64),
            "difftape: --step 0: must be a step of run, from 1 to 150\n");
  fs::create_directory(project / "empty");
  EXPECT_EQ(
      error({"empty"}, 66),
      "difftape: empty is not a run directory: it has no status.json; give the directory of a "
      "run\n");
  EXPECT_EQ(error({"run"}, 65, {.program = DIFFTAPE_TEST_PROGRAM_F64}),
            "difftape: run: was made in f32, but this program computes in f64; replay with "
            "difftape\n");
  const std::string text = contents(project / "text.txt");
  put(project / "text.txt", text + "more");
  EXPECT_THAT(error({"run"}, 65), HasSubstr("was made with other data: "));
  put(project / "text.txt", text);

  const std::string checkpoint = "run/checkpoints/step-00000020.h5";
  std::string damaged = contents(project / checkpoint);
  damaged.resize(damaged.size() / 2);
  put(project / checkpoint, damaged);
  EXPECT_THAT(error({"run", "--step", "30"}, 65),
              HasSubstr("checkpoint run/checkpoints/step-00000020.h5 is truncated"));
  const std::string yaml = contents(project / "run/config.yaml");
  put(project / "run/config.yaml", yaml + "optim.lr: 0.02\n");
  EXPECT_THAT(error({"run"}, 78), HasSubstr("optim.lr"));
  run::Config other = project.config;
  other.optim.lr = 0.02;
  put(project / "run/config.yaml", to_yaml(other));
  EXPECT_THAT(error({"run", "--step", "70"}, 78),
              HasSubstr("has a different configuration: optim.lr is 0.01, not 0.02"));
  put(project / "run/config.yaml", yaml);
  put(project / "run/metrics.jsonl", "");
  EXPECT_EQ(error({"run"}, 65),
            "difftape: run/metrics.jsonl: no step is logged yet; train the run first\n");
}

TEST_F(Spike, must_exist_for_a_replay) {
  project.config.train.steps = 5;
  project.config.optim.warmup_steps = 1;
  project.save();
  run_it();
  EXPECT_EQ(test::error(64, project.difftape({"replay", "run"})),
            "difftape: run: has no spike by its rule olmo2; choose a step with --step, or give a "
            "crash dump in its folder diverged\n");
}

}  // namespace
}  // namespace difftape::app
