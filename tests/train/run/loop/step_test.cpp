#include "train/run/loop/step.h"

#include <chrono>
#include <csignal>
#include <thread>

#include "tests/support/sentencepiece.h"
#include "tests/train/run/loop/tiny.h"
#include "train/run/data/prepare/prepare.h"
#include "train/run/records/run_files.h"
#include "train/system/exit.h"

namespace difftape::run {
namespace {

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

TEST(Validation, reads_more_batches_after_the_last_step_except_for_tasks) {
  constexpr Index kAvailable = 5000;
  Config config;
  config.train = {.steps = 100, .eval_batches = 8};
  EXPECT_EQ(batches_to_validate(config, 99, kAvailable), 8);
  EXPECT_EQ(batches_to_validate(config, 99, 3), 3);
  EXPECT_EQ(batches_to_validate(config, 100, kAvailable), kAvailable);
  EXPECT_EQ(batches_to_validate(config, 100, 30), 30) << "all that is held out";
  config.data.type = DataKind::mqar;
  EXPECT_EQ(batches_to_validate(config, 100, kAvailable), 8);
  config.train.final_eval_batches = 9;
  EXPECT_EQ(batches_to_validate(config, 100, kAvailable), 9);
  EXPECT_EQ(batches_to_validate(config, 99, kAvailable), 8);
}

TEST(Validation, reads_the_predicted_number_of_batches) {
  const TinyProject project;
  TrainState state(project.config);
  const Index available = state.data->val_batches(), steps = project.config.train.steps;
  Index losses = 0;
  const Tape::Events count{.on_value = [&](std::string_view op, std::string_view, const Tensor&) {
    losses += op == "cross_entropy" ? 1 : 0;
  }};
  for (state.step = steps - 1; state.step <= steps; ++state.step) state.validate(count);
  EXPECT_GT(available, project.config.train.eval_batches);
  EXPECT_EQ(losses, batches_to_validate(project.config, steps - 1, available) +
                        batches_to_validate(project.config, steps, available));
}

TEST(Step, that_diverges_does_not_change_the_parameters) {
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
  EXPECT_TRUE(std::ranges::equal(norm->value.values(), before));
  EXPECT_EQ(state.optimizer.steps(), 1);
}

/// Restores the default signal handlers, which the parent process may have disabled.
struct StopRequestTest : testing::Test {
  void SetUp() override {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) std::signal(signal, SIG_DFL);
  }
};

TEST_F(StopRequestTest, remembers_the_signal_as_an_exit_code) {
  const system::StopRequest stop;
  EXPECT_EQ(stop.received(), system::Exit::ok);
  std::raise(SIGTERM);
  EXPECT_EQ(stop.received(), system::Exit::sigterm);
  std::raise(SIGINT);
  EXPECT_EQ(stop.received(), system::Exit::sigint);
  std::raise(SIGHUP);
  EXPECT_EQ(stop.received(), system::Exit::sigterm) << "a terminal that closes asks to end";
  std::raise(SIGINT);
  std::raise(SIGUSR1);
  EXPECT_EQ(stop.received(), system::Exit::sigterm) << "mpirun forwards this signal";
}

TEST_F(StopRequestTest, keeps_ignored_signals_ignored) {
  std::signal(SIGHUP, SIG_IGN);  // like nohup
  {
    const system::StopRequest stop;
    std::raise(SIGHUP);
    EXPECT_EQ(stop.received(), system::Exit::ok);
  }
  EXPECT_EQ(std::signal(SIGHUP, SIG_DFL), SIG_IGN);
}

TEST_F(StopRequestTest, a_new_request_ignores_earlier_signals) {
  {
    const system::StopRequest stop;
    std::raise(SIGTERM);
  }
  EXPECT_EQ(system::StopRequest().received(), system::Exit::ok);
}

TEST_F(StopRequestTest, an_inner_request_sees_the_signals_of_the_outer_one) {
  const system::StopRequest sweep;
  std::raise(SIGTERM);
  {
    const system::StopRequest run;
    EXPECT_EQ(run.received(), system::Exit::sigterm);
  }
  std::raise(SIGHUP);  // would end the process if the inner object had restored the default
  EXPECT_EQ(sweep.received(), system::Exit::sigterm);
}

TEST_F(StopRequestTest, the_first_signal_prints_a_note_and_a_second_one_ends_the_process) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const int signal : {SIGINT, SIGTERM}) {
    EXPECT_EXIT(
        {
          const system::StopRequest stop("stopping\n");
          std::raise(signal);
          std::this_thread::sleep_for(std::chrono::duration<double>(stop.kRepeatSeconds + 0.1));
          std::raise(signal);
        },
        testing::KilledBySignal(signal), "^stopping\n$");
  }
}

// `timeout` sends its signal to the process and then to its group.
TEST_F(StopRequestTest, a_signal_that_is_sent_twice_is_one_request) {
  const system::StopRequest stop;
  std::raise(SIGTERM);
  std::raise(SIGTERM);
  EXPECT_EQ(stop.received(), system::Exit::sigterm);
}

TEST_F(StopRequestTest, restores_the_default_handlers_at_the_end) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        { const system::StopRequest stop; }
        std::raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM), "");
}

TEST_F(StopRequestTest, stops_a_run_after_the_current_step) {
  TinyProject project;
  const system::StopRequest stop;
  std::raise(SIGTERM);
  EXPECT_EQ(project.train("run"), system::Exit::sigterm);
  const RunStatus status = read_status(project / "run");
  EXPECT_EQ(status.state, RunState::stopped);
  EXPECT_EQ(status.step, 1);
  EXPECT_EQ(status.exit_code, 143);
  EXPECT_EQ(Checkpoint(find_checkpoint(project / "run")).meta().step, 1);
  EXPECT_THAT(project.console.str(), EndsWith("stopped at step 1; continue with: difftape train " +
                                              (project / "run").string() + " --resume\n"));
}

TEST_F(StopRequestTest, in_the_last_step_lets_the_run_finish) {
  TinyProject project;
  project.config.train.steps = project.config.optim.warmup_steps = 1;
  const system::StopRequest stop;
  std::raise(SIGTERM);
  EXPECT_EQ(project.train("run"), system::Exit::ok);
  EXPECT_EQ(read_status(project / "run").state, RunState::finished);
}

}  // namespace
}  // namespace difftape::run
