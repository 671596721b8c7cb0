// The memory of a step as it is counted, against the pool.
#include <fmt/format.h>

#include "core/pool.h"
#include "layers/language_model.h"
#include "layers/memory/step_memory.h"
#include "optim/adamw.h"
#include "optim/grad_norm.h"
#include "train/app/gradcheck/variants.h"

namespace difftape {
namespace {

/// It is exact but for a few scalars; less than what any one op saves must be left to drift.
constexpr double kTolerance = 0.02;

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

/// What the pool held at the peak of the second step of a run, and between forward and backward.
struct Measured {
  double peak, kept;
};
Measured measure(const ModelConfig& config, const StepShape& shape) {
  const auto before = pool::stats().bytes_in_use;
  LanguageModel model(config);
  model.parameters().initialize(1);
  AdamW optimizer(model.parameters(), {});
  const std::vector<std::int32_t> tokens(static_cast<size_t>(shape.batch * shape.seq), 7);
  const real cotangent = real(1) / static_cast<real>(shape.grad_accumulation);
  size_t kept = 0;
  for (const int step : {1, 2}) {
    if (step == 2) pool::reset_peak();
    for (Parameter& p : model.parameters()) p.zero_grad();
    for (Index micro = 0; micro < shape.grad_accumulation; ++micro) {
      const auto at_rest = pool::stats().bytes_in_use;
      Tape tape(Tape::Mode::training, shape.precision);
      const Var loss = model.loss(tape, {tokens, shape.batch, shape.seq}, tokens, shape.recompute);
      kept = pool::stats().bytes_in_use - at_rest;
      tape.backward(loss, Tensor::scalar(cotangent));
    }
    grad_norms(model.parameters());
    optimizer.step(1e-3);
  }
  const auto sum_of_loss = static_cast<size_t>(shape.batch * shape.seq + config.vocab_size) *
                           static_cast<size_t>(config.d_model) * sizeof(real);
  return {static_cast<double>(pool::stats().peak_bytes_in_use - before),
          static_cast<double>(kept - sum_of_loss)};  // without dhidden and dweight of the loss
}

void expect_counted(const ModelConfig& config, const StepShape& shape, const std::string& what) {
  const Measured measured = measure(config, shape);
  const StepMemory counted = step_memory(config, shape);
  const std::string where = fmt::format(
      "{}, d_model {}, T {}, V {}, {}", what, config.d_model, shape.seq, config.vocab_size,
      shape.recompute == ActivationCheckpointing::none ? "none" : "blocks");
  EXPECT_NEAR(static_cast<double>(counted.total()) / measured.peak, 1, kTolerance) << where;
  EXPECT_NEAR(static_cast<double>(counted.kept) / measured.kept, 1, kTolerance) << where;
}

constexpr ActivationCheckpointing kRecompute[] = {ActivationCheckpointing::none,
                                                  ActivationCheckpointing::blocks};

TEST(StepMemory, is_the_measured_peak) {
  const Sizes all[] = {
      {64, 8, 64, 256}, {128, 2, 256, 4096}, {64, 2, 512, 256}, {64, 1, 1024, 256}};
  for (const Sizes& sizes : all) {
    for (const char* kind : {"softmax", "diff_v1", "diff_v2"}) {
      for (const ActivationCheckpointing recompute : kRecompute) {
        expect_counted(model_of({.kind = kind}, sizes), {sizes.batch, sizes.seq, recompute}, kind);
      }
    }
  }
}

TEST(StepMemory, counts_what_rounding_takes) {
  const Sizes sizes{64, 2, 512, 256};
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

TEST(StepMemory, counts_what_every_variant_adds) {
  const Sizes sizes{32, 4, 128, 100};
  for (const app::AttentionVariant& variant : app::attention_variants()) {
    for (const ActivationCheckpointing recompute : kRecompute) {
      ModelConfig config = model_of(variant.attention, sizes);
      expect_counted(config, {sizes.batch, sizes.seq, recompute}, variant.name);
      config.attention.qk_norm = config.tie_embeddings = true;
      config.attention.sliding_window = 40;
      expect_counted(config, {sizes.batch, sizes.seq, recompute, 2}, variant.name + " qk_norm");
    }
  }
}

TEST(StepMemory, of_activations_grows_in_proportion_to_the_length_of_the_rows) {
  const auto of = [](Index seq, ActivationCheckpointing recompute) {
    return step_memory(model_of({.kind = "diff_v2"}, {128, 1, seq, 256}), {2, seq, recompute});
  };
  for (const ActivationCheckpointing recompute : kRecompute) {
    const StepMemory one = of(2048, recompute), four = of(8192, recompute);
    EXPECT_NEAR(static_cast<double>(four.kept) / static_cast<double>(one.kept), 4, 0.01);
    EXPECT_LT(four.total() - four.weights, 4.1 * static_cast<double>(one.total() - one.weights));
    EXPECT_EQ(four.moments, one.moments);
  }
}

}  // namespace
}  // namespace difftape
