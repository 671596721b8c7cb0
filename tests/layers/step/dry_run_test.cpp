// Memory counted by a dry run of a training step, against the real step.
#include "core/gemm_backend.h"
#include "core/pool.h"
#include "tests/support/test.h"

#include "layers/language_model.h"
#include "optim/grad_norm.h"
#include "optim/optimizer.h"
#include "train/app/gradcheck/cases.h"

namespace difftape {
namespace {

struct Sizes {
  Index d_model, batch, seq, vocab;
};

ModelConfig model_of(const AttentionConfig& attention, const Sizes& sizes) {
  ModelConfig config;
  config.d_model = sizes.d_model;
  config.d_ff = sizes.d_model * 11 / 4;
  config.num_layers = 3;
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.max_seq_len = sizes.seq;
  config.vocab_size = sizes.vocab;
  config.attention = attention;
  return config;
}

struct StepShape {
  Index batch, seq;
  ActivationCheckpointing activation_checkpointing = ActivationCheckpointing::none;
  Index gradient_accumulation_steps = 1;
  Precision precision = Precision::full;
};

/// Bytes in use at the peak of the second step, and between forward and backward.
struct Measured {
  size_t peak = 0, kept = 0;
  bool operator==(const Measured&) const = default;
};
Measured measure(const ModelConfig& config, const StepShape& shape) {
  const auto before = pool::stats().bytes_in_use;
  LanguageModel model(config);
  model.parameters().initialize(1);
  Optimizer optimizer(model.parameters(), {});
  const std::vector<std::int32_t> tokens(shape.batch * shape.seq, 7);
  std::vector<std::int32_t> targets = tokens;
  targets[1] = kIgnoreIndex;
  const real cotangent = real(1) / static_cast<real>(shape.gradient_accumulation_steps);
  Measured measured;
  for (const int step : {1, 2}) {
    if (step == 2) pool::reset_peak();
    for (Parameter& p : model.parameters()) p.zero_grad();
    for (Index micro = 0; micro < shape.gradient_accumulation_steps; ++micro) {
      const auto at_rest = pool::stats().bytes_in_use;
      Tape tape(Tape::Mode::training, shape.precision);
      const Var loss = model.loss(tape, {tokens, shape.batch, shape.seq},
                                  micro == 0 ? tokens : targets, shape.activation_checkpointing);
      measured.kept = pool::stats().bytes_in_use - at_rest;
      tape.backward(loss, Tensor::scalar(cotangent));
    }
    grad_norms(model.parameters());
    optimizer.step(1e-3);
  }
  measured.peak = pool::stats().peak_bytes_in_use - before;
  return measured;
}

Measured measure_dry(const ModelConfig& config, const StepShape& shape) {
  const pool::DryRun dry;
  return measure(config, shape);
}

void expect_counted(const ModelConfig& config, const StepShape& shape, const std::string& what) {
  const Measured real = measure(config, shape), dry = measure_dry(config, shape);
  const std::string where = fmt::format(
      "{}, d_model {}, T {}, V {}, {}", what, config.d_model, shape.seq, config.vocab_size,
      shape.activation_checkpointing == ActivationCheckpointing::none ? "none" : "blocks");
  EXPECT_EQ(dry.peak, real.peak) << where;
  EXPECT_EQ(dry.kept, real.kept) << where;
  EXPECT_GT(real.kept, 0u);
}

constexpr ActivationCheckpointing kRecompute[] = {ActivationCheckpointing::none,
                                                  ActivationCheckpointing::blocks};

TEST(DryRunOfAStep, has_the_peak_of_the_step) {
  const Sizes all[] = {{32, 4, 64, 256}, {64, 2, 256, 2048}, {32, 2, 512, 100}, {32, 1, 1024, 100}};
  for (const Sizes& sizes : all) {
    for (const char* kind : {"softmax", "diff_v1", "diff_v2"}) {
      for (const ActivationCheckpointing recompute : kRecompute) {
        expect_counted(model_of({.kind = kind}, sizes), {sizes.batch, sizes.seq, recompute}, kind);
      }
    }
  }
}

TEST(DryRunOfAStep, counts_the_memory_of_rounding) {
  const Sizes sizes{32, 2, 512, 100};
  for (const char* kind : {"softmax", "diff_v1", "diff_v2"}) {
    for (const Precision precision : {Precision::bf16, Precision::bf16_emulated}) {
      if (!unsupported_reason(precision).empty()) continue;
      for (const ActivationCheckpointing recompute : kRecompute) {
        expect_counted(model_of({.kind = kind}, sizes),
                       {sizes.batch, sizes.seq, recompute, 1, precision},
                       fmt::format("{} {}", kind, static_cast<int>(precision)));
      }
    }
  }
}

TEST(DryRunOfAStep, counts_the_memory_of_every_variant) {
  const Sizes sizes{16, 2, 128, 50};
  for (const app::AttentionVariant& variant : app::attention_variants()) {
    for (const ActivationCheckpointing recompute : kRecompute) {
      ModelConfig config = model_of(variant.attention, sizes);
      expect_counted(config, {sizes.batch, sizes.seq, recompute}, variant.name);
      config.attention.qk_norm = config.tie_word_embeddings = true;
      config.attention.sliding_window = 40;
      expect_counted(config, {sizes.batch, sizes.seq, recompute, 2}, variant.name + " qk_norm");
    }
  }
}

TEST(DryRunOfAStep, counts_the_memory_of_experts_whatever_their_load) {
  const std::vector<app::MoeVariant> variants = app::moe_variants();
  for (const app::MoeVariant& variant : {variants.front(), variants.back()}) {
    for (const ActivationCheckpointing recompute : kRecompute) {
      ModelConfig config = model_of({}, {16, 2, 100, 50});
      config.moe = variant.moe;
      config.moe.moe_intermediate_size = 420;  // gradients of weights read packed rows
      expect_counted(config, {2, 100, recompute}, variant.name);
    }
  }
}

TEST(DryRunOfAStep, has_activations_proportional_to_sequence_length) {
  const auto of = [](Index seq, ActivationCheckpointing recompute) {
    return measure_dry(model_of({.kind = "diff_v2"}, {128, 1, seq, 256}), {2, seq, recompute});
  };
  for (const ActivationCheckpointing recompute : kRecompute) {
    const Measured one = of(2048, recompute), four = of(8192, recompute);
    const auto dweight = 256 * 128 * sizeof(real);  // of the head, the same for every length
    EXPECT_NEAR(static_cast<double>(four.kept - dweight) / static_cast<double>(one.kept - dweight),
                4, 0.01);
    EXPECT_LT(four.peak, 4.1 * static_cast<double>(one.peak));
  }
}

TEST(DryRunOfAStep, does_not_change_surrounding_steps) {
  const ModelConfig config = model_of(
      {.kind = "diff_v2", .softmax_denominator = SoftmaxDenominator::sink}, {32, 2, 64, 100});
  const auto gradients = [&](bool with_dry_run) {
    LanguageModel model(config);
    model.parameters().initialize(1);
    Optimizer optimizer(model.parameters(), {});
    const std::vector<std::int32_t> tokens(128, 7);
    for (int step = 0; step < 3; ++step) {
      if (with_dry_run) measure_dry(config, {2, 64});
      for (Parameter& p : model.parameters()) p.zero_grad();
      Tape tape;
      tape.backward(model.loss(tape, {tokens, 2, 64}, tokens));
      optimizer.step(1e-3);
    }
    std::vector<real> all;
    for (const Parameter& p : model.parameters()) {
      all.insert(all.end(), p.value.values().begin(), p.value.values().end());
    }
    return all;
  };
  pool::trim();  // of blocks of other tests
  const std::vector<real> plain = gradients(false);
  const pool::Stats before = pool::stats();
  EXPECT_EQ(gradients(true), plain);
  EXPECT_EQ(pool::stats().system_allocations, before.system_allocations) << "blocks were waiting";
  EXPECT_EQ(pool::stats().bytes_in_use, before.bytes_in_use);
}

}  // namespace
}  // namespace difftape
