// Compares the predicted memory of a step with the pool during real steps.
#include "train/run/loop/step_memory.h"

#include <ctime>

#include "core/gemm_backend.h"
#include "core/pool.h"
#include "tests/train/run/loop/tiny.h"
#include "train/app/gradcheck/cases.h"
#include "train/run/loop/step.h"

namespace difftape::run {
namespace {

struct Sizes {
  Index d_model, batch, seq, vocab;
};

Config config_of(const AttentionConfig& attention, const Sizes& sizes) {
  Config config;
  config.model = {.d_model = sizes.d_model,
                  .num_layers = 3,
                  .num_heads = 4,
                  .num_kv_heads = 2,
                  .d_ff = sizes.d_model * 11 / 4,
                  .max_seq_len = sizes.seq,
                  .vocab_size = sizes.vocab,
                  .attention = attention};
  config.data.batch_size = sizes.batch;
  config.data.seq_len = sizes.seq;
  return config;
}

/// Returns the peak of the pool in the second and third step of a run, bytes, with the current
/// number of threads.
Index measured_peak(const Config& config) {
  const auto before = pool::stats().bytes_in_use;
  const Index batch = config.data.batch_size, seq = config.data.seq_len;
  const std::vector tokens(batch * (seq + 1), std::int32_t{7});
  TrainState state(config,
                   std::make_unique<FixedBatches>(std::vector{Batch{batch, seq, tokens}}, 8));
  train_step(state);
  pool::reset_peak();
  for (const int number : {2, 3}) {
    const Step step = train_step(state);
    EXPECT_EQ(step.step, number);
    EXPECT_FALSE(step.diverged);
    EXPECT_GT(step.norms.global, 0);
  }
  return static_cast<Index>(pool::stats().peak_bytes_in_use - before);
}

void expect_counted(const Config& config, const std::string& what) {
  EXPECT_EQ(step_memory(config).total(), measured_peak(config)) << fmt::format(
      "{}, d_model {}, T {}, V {}, recompute {}, precision {}", what, config.model.d_model,
      config.data.seq_len, config.model.vocab_size,
      to_string(config.train.activation_checkpointing), to_string(config.train.precision));
}

TEST(StepMemory, is_the_measured_peak) {
  const Sizes all[] = {
      {64, 8, 64, 256}, {128, 2, 256, 4096}, {64, 2, 512, 256}, {64, 1, 1024, 256}};
  for (const Sizes& sizes : all) {
    for (const char* kind : {"softmax", "diff_v1", "diff_v2"}) {
      Config config = config_of({.kind = kind}, sizes);
      for (const auto& [word, recompute] : kNames<ActivationCheckpointing>) {
        config.train.activation_checkpointing = recompute;
        expect_counted(config, kind);
      }
    }
  }
}

TEST(StepMemory, counts_the_memory_of_rounding) {
  for (const char* kind : {"softmax", "diff_v1", "diff_v2"}) {
    Config config = config_of({.kind = kind}, {64, 2, 512, 256});
    for (const auto& [name, precision] : kNames<Precision>) {
      if (!unsupported_reason(precision).empty()) continue;
      config.train.precision = precision;
      for (const auto& [word, recompute] : kNames<ActivationCheckpointing>) {
        config.train.activation_checkpointing = recompute;
        expect_counted(config, kind);
      }
    }
  }
}

TEST(StepMemory, counts_the_memory_of_every_variant) {
  for (const app::AttentionVariant& variant : app::attention_variants()) {
    for (const auto& [word, recompute] : kNames<ActivationCheckpointing>) {
      Config config = config_of(variant.attention, {32, 4, 128, 100});
      config.train.activation_checkpointing = recompute;
      expect_counted(config, variant.name);
      config.model.attention.qk_norm = config.model.tie_word_embeddings = true;
      config.model.attention.sliding_window = 40;
      config.train.gradient_accumulation_steps = 2;
      expect_counted(config, variant.name + " qk_norm");
      if (variant.attention.block_size > 0) continue;  // excludes a cross-decoder
      config.model.yoco_self_layers = 1;
      expect_counted(config, variant.name + " yoco");
    }
  }
}

TEST(StepMemory, is_reported_by_purpose) {
  Config config = config_of({.kind = "softmax"}, {64, 4, 128, 4096});
  const auto numbers = [](Index count) { return count * static_cast<Index>(sizeof(real)); };
  const Index tokens = 128, width = 64, vocab = 4096;  // of a leaf, one of 4 sequences
  const Index parameters = LanguageModel(config.model).parameters().count();
  const StepMemory memory = step_memory(config);
  EXPECT_EQ(memory.gradients, numbers(3 * parameters)) << "two are partial sums";
  EXPECT_EQ(memory.moments, numbers(2 * parameters));
  EXPECT_NEAR(static_cast<double>(memory.weights), static_cast<double>(numbers(parameters)), 8192)
      << "blocks of the pool are rounded up";
  // The peak is in the loss, when only its own two gradients exist.
  EXPECT_EQ(memory.activation_gradients, numbers(tokens * width + vocab * width));
  EXPECT_GE(memory.scratch, numbers(tokens * vocab)) << "the logits";
  EXPECT_GT(memory.activations, numbers(3 * 9 * tokens * width));
  config.train.activation_checkpointing = ActivationCheckpointing::blocks;
  EXPECT_LT(step_memory(config).activations, memory.activations / 3);
}

TEST(StepMemory, of_activations_grows_in_proportion_to_the_length_of_the_rows) {
  for (const auto& [word, recompute] : kNames<ActivationCheckpointing>) {
    const auto of = [recompute = recompute](Index seq) {
      Config config = config_of({.kind = "diff_v2"}, {128, 2, seq, 256});
      config.train.activation_checkpointing = recompute;
      return step_memory(config);
    };
    const StepMemory one = of(2048), four = of(8192);
    EXPECT_NEAR(static_cast<double>(four.activations) / static_cast<double>(one.activations), 4,
                0.01);
    EXPECT_LT(four.total() - four.weights, 4.1 * static_cast<double>(one.total() - one.weights));
    EXPECT_EQ(four.moments, one.moments);
  }
}

TEST(StepMemory, needs_no_unit_for_the_precision) {
  Config config = config_of({}, {64, 2, 64, 256});
  for (const auto& [name, precision] : kNames<Precision>) {
    config.train.precision = precision;
    EXPECT_GT(step_memory(config).total(), 0) << name;
  }
}

TEST(StepMemory, beyond_the_address_space_is_an_error) {
  Config config = config_of({}, {64, 2, 64, 256});
  config.model.vocab_size = Index{1} << 42;
  EXPECT_THAT([&] { step_memory(config); },
              ThrowsMessage<ConfigError>(HasSubstr("exceeds the address space of a process")));
  EXPECT_FALSE(pool::dry());
}

TEST(RequireMemory, reports_needed_and_free_memory_and_a_remedy) {
  Config config = TinyProject().config;
  const auto needed = static_cast<std::uint64_t>(step_memory(config).total());
  require_memory(config, 1, needed);
  require_memory(config, 3, 3 * needed);
  require_memory(config, 1000, std::nullopt);
  const auto error = [&](Index processes, std::uint64_t free) {
    return message_of<ConfigError>([&] { require_memory(config, processes, free); });
  };
  EXPECT_THAT(error(1, needed - 1),
              AllOf(StartsWith("tiny: a training step needs "), HasSubstr(" of memory, but "),
                    HasSubstr("are free; lower data.batch_size, data.seq_len or the sizes of"),
                    HasSubstr("set train.activation_checkpointing to blocks")));
  EXPECT_THAT(error(3, 3 * needed - 1), HasSubstr("3 processes need "));
  EXPECT_THAT(error(3, 3 * needed - 1),
              HasSubstr("lower the number of processes (--jobs of a sweep), data.batch_size, "));
  config.data.batch_size = 1;
  const auto one = static_cast<std::uint64_t>(step_memory(config).total());
  EXPECT_THAT(error(1, one - 1), HasSubstr("are free; lower data.seq_len or the sizes of"));
  config.train.activation_checkpointing = ActivationCheckpointing::blocks;
  EXPECT_THAT(error(1, 20000), Not(HasSubstr("activation_checkpointing")));
}

TEST(RequireMemory, blames_the_keys_that_need_most) {
  const auto error = [](const Config& config) {
    return message_of<ConfigError>([&] { require_memory(config, 1, std::uint64_t{1} << 37); });
  };
  Config config = TinyProject().config;
  const Config tiny = config;
  config.data.batch_size = Index{1} << 43;  // no dry run could hold the tokens
  EXPECT_THAT(error(config), HasSubstr("lower data.batch_size, data.seq_len or"));
  config.train.gradient_accumulation_steps = 2;
  EXPECT_THAT(error(config), HasSubstr("lower train.gradient_accumulation_steps, data.batch_size"));
  config = tiny;
  config.model.d_ff = 1 << 20;
  config.model.num_layers = 1 << 20;
  EXPECT_THAT(error(config), HasSubstr("lower model.d_ff, model.num_layers or model.d_model"));
  config.model.moe.num_experts = 1024;
  config.model.moe.moe_intermediate_size = 1 << 20;
  EXPECT_THAT(error(config), HasSubstr("lower model.moe.num_experts, model.moe.moe_intermediate"));
  config = tiny;
  config.model.vocab_size = Index{1} << 35;
  EXPECT_THAT(error(config), HasSubstr("lower model.vocab_size or model.d_model"));
  config = tiny;
  config.model.d_model = 1 << 19;
  EXPECT_THAT(error(config), HasSubstr("lower model.d_model or model.num_layers"));
}

// The step of 64 micro-batches is not dry-run.
TEST(RequireMemory, of_many_micro_batches_is_the_memory_of_a_step) {
  Config config = TinyProject().config;
  config.train.gradient_accumulation_steps = 64;
  const auto needed = static_cast<double>(step_memory(config).total());
  require_memory(config, 1, static_cast<std::uint64_t>(1.01 * needed));
  EXPECT_THROW(require_memory(config, 1, static_cast<std::uint64_t>(0.99 * needed)), ConfigError);
}

// Sizes whose dry run would take minutes and gigabytes. The processor's time does not depend on
// other programs.
TEST(RequireMemory, needs_no_time_for_sizes_that_cannot_fit) {
  const std::clock_t start = std::clock();
  Config many = config_of({}, {16384, 1, 16, 256});
  many.model.num_layers = 126;  // as many weights as the largest Llama 3.1
  many.model.d_ff = 53248;
  EXPECT_THAT(message_of<ConfigError>([&] { require_memory(many, 1, std::uint64_t{1} << 40); }),
              HasSubstr("needs more than 3.5 TB"));
  Config tokens = TinyProject().config;
  tokens.data.batch_size = Index{1} << 20;
  tokens.data.seq_len = 1024;
  tokens.model.max_seq_len = 1024;
  EXPECT_THAT(message_of<ConfigError>([&] { require_memory(tokens, 1, std::uint64_t{1} << 37); }),
              HasSubstr("of memory, but 137 GB are free"));
  Config micros = TinyProject().config;
  micros.data.batch_size = micros.train.gradient_accumulation_steps = Index{1} << 20;
  EXPECT_THROW(require_memory(micros, 1, std::uint64_t{1} << 37), ConfigError);
  Config experts = config_of({}, {64, 1, 64, 256});
  experts.model.num_layers = 1'000'000;
  experts.model.moe = {.num_experts = 1'000'000, .moe_intermediate_size = 65536};
  EXPECT_THAT(message_of<ConfigError>([&] { require_memory(experts, 1, std::uint64_t{1} << 40); }),
              HasSubstr("needs more than 101 EB"));
  EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC);
}

// The extrapolated memory of a batch whose dry run is still affordable.
TEST(RequireMemory, of_a_large_batch_grows_with_its_sequences) {
  Config config = TinyProject().config;
  config.data.batch_size = (Index{1} << 20) / config.data.seq_len;
  const auto needed = static_cast<double>(step_memory(config).total());
  require_memory(config, 1, static_cast<std::uint64_t>(1.01 * needed));
  EXPECT_THROW(require_memory(config, 1, static_cast<std::uint64_t>(0.99 * needed)), ConfigError);
}

TEST(RequireMemory, is_checked_by_every_command_that_builds_a_model) {
  const TinyProject tiny;
  put(tiny / "huge.yaml",
      "base: tiny.yaml\nmodel: {d_model: 65536, num_layers: 1024, moe: {num_experts: 1024, "
      "moe_intermediate_size: 65536}}\n");
  put(tiny / "s.yaml", "base: huge.yaml\nsweep: {arms: {a: {}}}\n");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"train", "huge.yaml", "--out", "out"},
        {"sweep", "s.yaml", "--dry-run"},
        {"eval", "huge.yaml"},
        {"plan", "huge.yaml"},
        {"generate", "huge.yaml", "--prompt", "a"},
        {"export", "huge.yaml", "--format", "safetensors", "--out", "x.safetensors"}}) {
    EXPECT_THAT(test::error(78, tiny.difftape(command)), HasSubstr("lower model.moe.num_experts"))
        << command[0];
  }
}

TEST(RequireMemory, is_checked_before_a_run_or_sweep_starts) {
  const TinyProject tiny;
  put(tiny / "s.yaml",
      "base: tiny.yaml\nsweep: {arms: {a: {}, b: {model.attention.kind: diff_v2}}}\n");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"train", "tiny.yaml", "--out", "out"},
        {"sweep", "s.yaml", "--out", "out"}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(),
                     {"--set", "data.batch_size=1048576", "--set", "model.d_model=2048"});
    EXPECT_THAT(test::error(78, tiny.difftape(arguments)), HasSubstr(" of memory, but "));
    EXPECT_FALSE(fs::exists(tiny / "out/metrics.jsonl"));
  }
}

}  // namespace
}  // namespace difftape::run
