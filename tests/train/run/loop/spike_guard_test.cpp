#include "tests/train/run/loop/tiny.h"
#include "train/run/loop/step.h"
#include "train/run/records/metrics.h"
#include "train/run/records/spike_records.h"
#include "train/stats/descriptive.h"
#include "train/stats/spikes.h"
#include "train/study/compare/run_record.h"

namespace difftape::run {
namespace {

TEST(SpikeGuard, of_none_never_changes_the_gradient) {
  SpikeGuard guard(OnSpike::none);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(guard.scale(1, i % 2 + 1), 1);
  EXPECT_EQ(guard.scale(1e9, 1e9), 1);
}

TEST(SpikeGuard, of_zclip_clips_a_spike_by_earlier_norms) {
  SpikeGuard guard(OnSpike::zclip);
  for (int i = 0; i < 25; ++i)
    EXPECT_EQ(guard.scale(1, std::array{1.0, 2.0, 3.0, 2.0, 2.0}.at(i % 5)), 1) << "warm-up";
  // Mean 2, variance 0.4. z = 8 / std, and mean + 2.5^2 std / z = 2 + 6.25 0.4 / 8.
  const double clipped = 2 + 6.25 * 0.4 / 8;
  EXPECT_NEAR(guard.scale(1, 10), clipped / 10, 1e-6);
  EXPECT_EQ(guard.scale(1e9, 2), 1) << "the loss does not matter";
  // The moving averages include the clipped value, then 2.
  double mean = 2, variance = 0.4;
  for (const double x : {clipped, 2.0}) {
    mean = 0.97 * mean + 0.03 * x;
    variance = 0.97 * variance + 0.03 * (x - mean) * (x - mean);
  }
  EXPECT_NEAR(guard.scale(1, 5), (mean + 6.25 * variance / (5 - mean)) / 5, 1e-6);
}

TEST(SpikeGuard, of_skip_step_skips_spikes_of_loss_and_norm) {
  const auto prepared = [] {
    SpikeGuard guard(OnSpike::skip_step);
    for (int i = 0; i < 62; ++i) guard.scale(3 + 0.1 * (i % 2), 1 + 0.2 * (i % 2));
    EXPECT_EQ(SpikeGuard(guard).scale(100, 100), 1) << "62 values are too short a history";
    guard.scale(3, 1);
    return guard;
  };
  EXPECT_EQ(prepared().scale(3.05, 1.1), 1);
  EXPECT_EQ(prepared().scale(9, 1.1), 0) << "a spike of the loss";
  EXPECT_EQ(prepared().scale(3.05, 9), 0) << "a spike of the norm";
  EXPECT_EQ(prepared().scale(0.1, 0.1), 1) << "falling is not a spike";
  SpikeGuard guard = prepared();
  EXPECT_EQ(guard.scale(3.05, 9), 0);
  EXPECT_EQ(guard.scale(3.05, 7), 1) << "the window includes the first spike";
}

/// Text data with one batch of a byte that the text does not contain.
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

/// Returns all numbers that a step may change.
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

TEST(OnSpike, zclip_scales_the_gradient) {
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

TEST(OnSpike, is_logged_only_if_enabled) {
  TinyProject project;
  for (const auto& [name, value] : kNames<OnSpike>) {
    project.config.train.on_spike = value;
    ASSERT_EQ(project.train(std::string(name)), system::Exit::ok);
    for (const auto& line : metrics_lines(project / std::string(name))) {
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
  put(project / "text.txt", text);
  project.config.train.steps = 90;
  project.config.train.checkpoint_interval = 45;
  for (const OnSpike value : {OnSpike::zclip, OnSpike::skip_step}) {
    const std::string whole(to_string(value)), cut = whole + " cut";
    project.config.train.on_spike = value;
    ASSERT_EQ(project.train(whole), system::Exit::ok);
    test::cut_after(45, project / whole, project / cut);
    ASSERT_EQ(project.train(cut, true), system::Exit::ok);
    test::expect_the_same_run(project / cut, project / whole);
    const auto guard = Checkpoint(find_checkpoint(project / whole)).meta().extra_state["guard"];
    EXPECT_EQ(guard["norms"]["count"], 90);
    EXPECT_EQ(guard["norms"].contains("variance"), value == OnSpike::zclip);
    if (value == OnSpike::zclip) {
      EXPECT_GT(guard["norms"]["spikes"], 0) << "some were clipped";
    }
  }
}

TEST(SpikesOfARun, are_counted_at_every_step_and_summarized) {
  TinyProject project;
  project.config.train.steps = 40;
  project.config.log.spike_rule = stats::SpikeDefinition::olmo2;
  project.config.log.spike_min_history = 4;
  project.config.log.spike_threshold = 2.5;
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  stats::SpikeDetector loss_spikes({1000, 2.5, 4}), grad_spikes({1000, 2.5, 4});
  for (const auto& line : metrics_lines(project / "run")) {
    loss_spikes.add(line["train/loss"]);
    grad_spikes.add(line["optim/grad_norm"]);
    EXPECT_EQ(line["spike_score/loss"], loss_spikes.score());
    EXPECT_EQ(line["spike_score/grad_norm"], grad_spikes.score());
  }
  const auto records = spike_records(read_metrics(project / "run/metrics.jsonl"), {1000, 2.5, 4});
  ASSERT_FALSE(records.empty());
  write_spikes_csv(project / "expected.csv", records);
  EXPECT_EQ(contents(project / "run/spikes.csv"), contents(project / "expected.csv"));
  EXPECT_THAT(project.console.str(), HasSubstr("\n" + spike_summary(records) + "\n"));
}

TEST(GradientRamp, is_1_for_half_of_the_steps_then_grows_linearly) {
  const TrainConfig train{.steps = 100, .gradient_ramp = 3};
  EXPECT_EQ(gradient_ramp_at(train, 1), 1);
  EXPECT_EQ(gradient_ramp_at(train, 50), 1);
  EXPECT_DOUBLE_EQ(gradient_ramp_at(train, 75), 2);
  EXPECT_DOUBLE_EQ(gradient_ramp_at(train, 100), 3);
  EXPECT_EQ(gradient_ramp_at({.steps = 100}, 100), 1);
}

TEST(GradientRamp, multiplies_the_gradient_but_not_the_logged_loss) {
  TinyProject project;
  project.config.optim.max_grad_norm = 0;
  ASSERT_EQ(project.train("plain"), system::Exit::ok);
  project.config.train.gradient_ramp = 2;
  ASSERT_EQ(project.train("ramp"), system::Exit::ok);
  const auto plain = metrics_lines(project / "plain"), ramp = metrics_lines(project / "ramp");
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(plain[i]["train/loss"], ramp[i]["train/loss"]);
    EXPECT_EQ(plain[i]["optim/grad_norm"], ramp[i]["optim/grad_norm"]);
  }
  // Step 7 still starts from the same weights.
  EXPECT_EQ(plain[6]["train/loss"], ramp[6]["train/loss"]);
  EXPECT_NEAR(ramp[6]["optim/grad_norm"].get<double>() / plain[6]["optim/grad_norm"].get<double>(),
              1 + 2.0 / 12, 1e-6);
}

TEST(GradientRamp, is_detected_by_gradient_norm_growth) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    TinyProject project;
    project.config.run.seed = seed;
    project.config.model.init.preset = InitPreset::lecun;
    project.config.optim.weight_decay = 1e-4;
    project.config.optim.independent_weight_decay = true;
    project.config.data.batch_size = 8;
    project.config.train.steps = 400;
    project.config.train.eval_interval = 0;
    project.config.optim.schedule = ScheduleKind::wsd;
    project.config.optim.decay_fraction = 0.2;
    const auto growth_of = [&](const std::string& out, double ramp) {
      project.config.train.gradient_ramp = ramp;
      EXPECT_EQ(project.train(out), system::Exit::ok);
      const study::RunRecord run = study::load_run(project / out);
      return std::pair(run.number("grad_norm_growth_before_decay"), run.number("val_loss"));
    };
    const auto [plain, loss] = growth_of("plain", 1);
    const auto [ramp, loss_of_ramp] = growth_of("ramp", 2);
    // A ramp to 2 grows as step^1 in the second half of the steps.
    EXPECT_NEAR(ramp - plain, 1, 0.25) << "seed " << seed;
    EXPECT_LT(plain, 0.5);
    EXPECT_GT(ramp, 0.5);
    EXPECT_NEAR(loss_of_ramp, loss, 0.05) << "training hardly changes";
  }
}

/// Returns a configuration with all remedies that can be combined.
Config treated(Config config) {
  config.model.embedding_norm = true;
  config.model.final_logit_softcap = 20;
  config.model.z_loss_weight = 1e-3;
  config.model.attention.qk_clip_threshold = 0.05;
  config.model.init = {.preset = InitPreset::torch, .embedding_std = 0.5};
  config.train.gradient_accumulation_steps = 2;
  return config;
}

TEST(Remedies, are_bitwise_equal_for_1_2_and_4_threads) {
  for (const std::string kind : {"softmax", "diff_v2"}) {
    TinyProject project(kind);
    project.config = treated(project.config);
    project.config.train.steps = 4;
    project.config.log.param_grad_norms_interval = 1;
    test::expect_the_same_bits_with_threads(project);
  }
}

TEST(Remedies, survive_a_restart_bit_for_bit) {
  TinyProject project("diff_v1");
  const Config config = treated(project.config);
  TrainState whole(config), part(config), rest(config);
  for (int i = 0; i < 4; ++i) train_step(whole), train_step(part);
  part.save(project / "saved");
  rest.restore(find_checkpoint(project / "saved"));
  for (int i = 0; i < 4; ++i) {
    const Step a = train_step(whole), b = train_step(rest);
    EXPECT_EQ(a.loss, b.loss);
    EXPECT_EQ(a.squared_log_z, b.squared_log_z);
    EXPECT_EQ(a.qk_clip.value().largest, b.qk_clip.value().largest);
    EXPECT_EQ(a.qk_clip->heads, b.qk_clip->heads);
  }
}

TEST(Remedies, give_the_same_bits_with_activation_checkpointing) {
  TinyProject project("diff_v2");
  Config config = treated(project.config);
  TrainState keeps(config);
  config.train.activation_checkpointing = ActivationCheckpointing::blocks;
  TrainState recomputes(config);
  for (int i = 0; i < 4; ++i) {
    const Step a = train_step(keeps), b = train_step(recomputes);
    EXPECT_EQ(a.loss, b.loss);
    EXPECT_EQ(a.norms.global, b.norms.global);
    EXPECT_EQ(a.qk_clip.value().largest, b.qk_clip.value().largest);
  }
}

TEST(ZLoss, is_logged_separately_from_the_losses) {
  TinyProject project;
  TrainState plain(project.config);
  project.config.model.z_loss_weight = 0.5;
  TrainState state(project.config);
  EXPECT_EQ(state.validate().loss, plain.validate().loss);
  const Step with = train_step(state), without = train_step(plain);
  EXPECT_EQ(with.loss, without.loss);
  EXPECT_EQ(with.squared_log_z, without.squared_log_z);
  EXPECT_NE(with.norms.global, without.norms.global);
  EXPECT_NE(train_step(state).loss, train_step(plain).loss);

  ASSERT_EQ(project.train("run"), system::Exit::ok);
  const auto first = metrics_lines(project / "run").front();
  EXPECT_EQ(first["train/loss"], with.loss);
  EXPECT_EQ(first["train/z_loss"], 0.5 * with.squared_log_z);
  EXPECT_NEAR(with.squared_log_z, std::pow(std::log(256), 2), 0.5) << "logits are almost 0";
}

TEST(ZLoss, keeps_log_z_smaller) {
  TinyProject project;
  TrainState plain(project.config);
  project.config.model.z_loss_weight = 0.5;
  TrainState state(project.config);
  Step with, without;
  for (int i = 0; i < 60; ++i) with = train_step(state), without = train_step(plain);
  EXPECT_LT(with.squared_log_z, 0.9 * without.squared_log_z);
}

TEST(QkClip, bounds_the_logits_of_the_next_step_and_is_logged) {
  TinyProject project("diff_v1");
  project.config.optim.lr = 0.05;
  project.config.train.steps = 20;
  ASSERT_EQ(project.train("free"), system::Exit::ok);
  EXPECT_FALSE(metrics_lines(project / "free").back().contains("optim/qk_clip_heads"));
  project.config.model.attention.qk_clip_threshold = 0.25;
  ASSERT_EQ(project.train("clipped"), system::Exit::ok);
  const auto lines = metrics_lines(project / "clipped");
  bool clipped = false;
  for (const auto& line : lines) {
    const double largest = line["optim/qk_clip_logit_max"], heads = line["optim/qk_clip_heads"];
    EXPECT_EQ(largest > 0.25, heads > 0);
    EXPECT_LE(heads, 4);
    clipped = clipped || heads > 0;
  }
  EXPECT_TRUE(clipped);
  const auto logit = [&](const char* run) {
    return metrics_lines(project / run).back()["attn/logit_max/0"].get<double>();
  };
  EXPECT_LT(logit("clipped"), logit("free"));
}

}  // namespace
}  // namespace difftape::run
