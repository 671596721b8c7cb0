#include "tests/train/run/loop/tiny.h"
#include "train/run/loop/step.h"

namespace difftape::run {
namespace {

using test::last_checkpoint;
using test::measured;
using test::TinyProject;

TEST(SpikeGuard, of_none_never_interferes) {
  SpikeGuard guard(OnSpike::none);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(guard.scale(1, i % 2 + 1), 1);
  EXPECT_EQ(guard.scale(1e9, 1e9), 1);
}

TEST(SpikeGuard, of_zclip_clips_a_spike_to_what_the_norms_before_it_let_expect) {
  SpikeGuard guard(OnSpike::zclip);
  for (int i = 0; i < 25; ++i) {
    EXPECT_EQ(guard.scale(1, std::array{1.0, 2.0, 3.0, 2.0, 2.0}.at(i % 5)), 1) << "warm-up";
  }
  // Mean 2, variance 0.4. z = 8 / std, and mean + 2.5^2 std / z = 2 + 6.25 0.4 / 8.
  const double clipped = 2 + 6.25 * 0.4 / 8;
  EXPECT_NEAR(guard.scale(1, 10), clipped / 10, 1e-6);
  EXPECT_EQ(guard.scale(1e9, 2), 1) << "the loss plays no part";
  // The clipped value is in the mean, and 2 after it.
  double mean = 2, variance = 0.4;
  for (const double x : {clipped, 2.0}) {
    mean = 0.97 * mean + 0.03 * x;
    variance = 0.97 * variance + 0.03 * (x - mean) * (x - mean);
  }
  EXPECT_NEAR(guard.scale(1, 5), (mean + 6.25 * variance / (5 - mean)) / 5, 1e-6);
}

TEST(SpikeGuard, of_skip_step_skips_spikes_of_loss_and_norm_and_judges_by_all_values_before) {
  const auto prepared = [] {
    SpikeGuard guard(OnSpike::skip_step);
    for (int i = 0; i < 62; ++i) guard.scale(3 + 0.1 * (i % 2), 1 + 0.2 * (i % 2));
    EXPECT_EQ(SpikeGuard(guard).scale(100, 100), 1) << "62 values are no history yet";
    guard.scale(3, 1);
    return guard;
  };
  EXPECT_EQ(prepared().scale(3.05, 1.1), 1);
  EXPECT_EQ(prepared().scale(9, 1.1), 0) << "of the loss";
  EXPECT_EQ(prepared().scale(3.05, 9), 0) << "of the norm";
  EXPECT_EQ(prepared().scale(0.1, 0.1), 1) << "falling is no spike";
  SpikeGuard guard = prepared();
  EXPECT_EQ(guard.scale(3.05, 9), 0);
  EXPECT_EQ(guard.scale(3.05, 7), 1) << "the first one is in the window";
}

/// Text, but for one batch of a byte that is in no text.
class Disturbed : public Dataset {
 public:
  Disturbed(const Config& config, Index step)
      : data_(make_dataset(config.data, config.model, config.run.seed)), step_(step) {}
  Batch train_batch(Index step, Index micro) const override {
    Batch batch = data_->train_batch(step, micro);
    if (step + 1 == step_) std::ranges::fill(batch.tokens, 200);
    return batch;
  }
  Batch val_batch(Index i) const override { return data_->val_batch(i); }
  Index val_batches() const override { return data_->val_batches(); }
  Index vocab_size() const override { return data_->vocab_size(); }
  nlohmann::ordered_json info() const override { return data_->info(); }

 private:
  std::unique_ptr<Dataset> data_;
  Index step_;
};

/// All that a step may change.
std::vector<real> numbers_of(const TrainState& state) {
  std::vector<real> all;
  const auto keep = [&](const Tensor& tensor) {
    all.insert(all.end(), tensor.values().begin(), tensor.values().end());
  };
  for (const Optimizer::State& each : state.optimizer.states()) {
    keep(each.parameter->value);
    for (const StateTensor& tensor : each.tensors) keep(tensor.value);
  }
  return all;
}

constexpr Index kDisturbed = 80;

std::unique_ptr<TrainState> before_the_spike(Config config, OnSpike on_spike) {
  config.train.on_spike = on_spike;
  config.train.steps = 100;
  auto state =
      std::make_unique<TrainState>(config, std::make_unique<Disturbed>(config, kDisturbed));
  while (state->step < kDisturbed - 1) train_step(*state);
  return state;
}

TEST(OnSpike, skip_step_leaves_weights_and_optimizer_as_they_were) {
  const TinyProject project;
  for (const auto& [kind, value] : kNames<OptimizerKind>) {
    Config config = project.config;
    config.optim.name = value;
    const auto state = before_the_spike(config, OnSpike::skip_step);
    const std::vector<real> before = numbers_of(*state);
    const Index taken = state->optimizer.steps();
    const Step skipped = train_step(*state);
    EXPECT_EQ(skipped.spike_scale, 0) << kind;
    EXPECT_FALSE(skipped.update.has_value());
    EXPECT_FALSE(skipped.diverged.has_value());
    EXPECT_EQ(numbers_of(*state), before) << kind;
    EXPECT_EQ(state->optimizer.steps(), taken);
    EXPECT_EQ(state->step, kDisturbed);
    EXPECT_EQ(train_step(*state).spike_scale, 1);
    EXPECT_NE(numbers_of(*state), before);
    EXPECT_EQ(state->optimizer.steps(), taken + 1);
  }
}

TEST(OnSpike, zclip_is_a_step_with_a_gradient_so_much_smaller) {
  TinyProject project;
  for (const double max_grad_norm : {0.0, 0.01}) {
    project.config.optim.max_grad_norm = max_grad_norm;
    const auto state = before_the_spike(project.config, OnSpike::zclip);
    const std::vector<real> before = numbers_of(*state);
    const TinyProject again;
    TrainState by_hand(state->config, std::make_unique<Disturbed>(state->config, kDisturbed));
    state->save(again / "at");
    by_hand.restore(find_checkpoint(again / "at"));
    ASSERT_EQ(numbers_of(by_hand), before);

    const Step step = train_step(*state);
    EXPECT_GT(step.spike_scale, 0);
    EXPECT_LT(step.spike_scale, 0.9);
    accumulate_gradients(by_hand, batches_of(by_hand, kDisturbed));
    const double norm = grad_norms(by_hand.model.parameters()).global;
    EXPECT_EQ(norm, step.norms.global) << "before clipping";
    const double scale = std::min(step.spike_scale, clip_scale(norm, max_grad_norm));
    EXPECT_EQ(scale<step.spike_scale, max_grad_norm> 0) << "the smaller of both";
    by_hand.optimizer.step(step.lr, scale);
    EXPECT_EQ(numbers_of(by_hand), numbers_of(*state));
  }
}

TEST(OnSpike, is_logged_only_where_it_is_asked_for) {
  TinyProject project;
  for (const auto& [name, value] : kNames<OnSpike>) {
    project.config.train.on_spike = value;
    ASSERT_EQ(project.train(std::string(name)), system::Exit::ok);
    for (const auto& line : test::metrics_lines(project / std::string(name))) {
      EXPECT_EQ(line.contains("optim/spike_scale"), value != OnSpike::none);
      EXPECT_EQ(line.value("optim/spike_scale", 1.0), 1);
    }
  }
  EXPECT_FALSE(Checkpoint(find_checkpoint(project / "none")).meta().extra_state.contains("guard"));
}

TEST(OnSpike, resumes_to_the_bits_of_an_uninterrupted_run) {
  TinyProject project;
  std::string text = test::tiny_text();  // norms spike at stretches of one new letter
  for (size_t at = 0; at + 40 < text.size(); at += 700)
    text.replace(at, 40, 40, static_cast<char>('A' + at / 700));
  test::put(project / "text.txt", text);
  project.config.train.steps = 90;
  project.config.train.checkpoint_interval = 45;
  for (const OnSpike value : {OnSpike::zclip, OnSpike::skip_step}) {
    const std::string whole(to_string(value)), cut = whole + " cut";
    project.config.train.on_spike = value;
    ASSERT_EQ(project.train(whole), system::Exit::ok);
    std::filesystem::copy(project / whole, project / cut, std::filesystem::copy_options::recursive);
    test::put(project / (cut + "/checkpoints/latest"), "step-00000045.h5\n");
    std::filesystem::remove(project / (cut + "/checkpoints/step-00000090.h5"));
    ASSERT_EQ(project.train(cut, true), system::Exit::ok);
    EXPECT_EQ(measured(project / cut), measured(project / whole));
    EXPECT_EQ(last_checkpoint(project / cut), last_checkpoint(project / whole));
    const auto guard = Checkpoint(find_checkpoint(project / whole)).meta().extra_state["guard"];
    EXPECT_EQ(guard["norms"]["count"], 90);
    EXPECT_EQ(guard["norms"].contains("variance"), value == OnSpike::zclip);
    if (value == OnSpike::zclip) {
      EXPECT_GT(guard["norms"]["spikes"], 0) << "some were clipped";
    }
  }
}

}  // namespace
}  // namespace difftape::run
