#pragma once
// A whole training run as plain values. fields.cpp has every key with its range and meaning, those
// of the model model_fields.cpp.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/gemm_backend.h"
#include "core/names.h"
#include "core/real.h"
#include "layers/model_config.h"
#include "optim/optim_config.h"
#include "train/stats/spikes.h"

namespace difftape {

template <>
inline constexpr auto kNames<Precision> =
    std::to_array<Named<Precision>>({{"full", Precision::full},
                                     {"bf16", Precision::bf16},
                                     {"bf16_emulated", Precision::bf16_emulated}});

template <>
inline constexpr auto kNames<Engine> =
    std::to_array<Named<Engine>>({{"auto", Engine::fast}, {"portable", Engine::portable}});

}  // namespace difftape

namespace difftape::run {

// The sizes of the generated tasks, each of which is defined at the head of
// train/run/data/tasks/<kind>.cpp.

/// Needle-in-a-haystack: facts "city -> number" in filler (V1 paper, section 3.4).
struct NeedlesConfig {
  Index cities = 64;
  std::vector<Index> facts{1, 2, 4, 6};    ///< N, one setting an item
  std::vector<Index> queries{1, 2, 2, 2};  ///< R of the same settings
  Index digits = 1;                        ///< tokens of a number
  Index filler = 16;                       ///< different tokens of filler

  /// Positions of the answer in validation: 0, 25, 50, 75 and 100 % of the context.
  static constexpr Index kDepths = 5;
  /// A city and its digits.
  Index fact_tokens() const { return 1 + digits; }
  /// A question and its answer: marker, city and digits.
  Index question_tokens() const { return 2 + digits; }
  Index vocab_size() const { return 1 + 10 + cities + filler; }
};

/// Multi-query associative recall (Arora et al. 2023, "Zoology").
struct MqarConfig {
  Index keys = 64;          ///< different keys
  Index values = 64;        ///< different values
  Index pairs = 4;          ///< D
  double gap_power = 0.01;  ///< a

  Index vocab_size() const { return keys + values; }
};

/// Bigram-backcopy (Guo et al. 2024, "Active-Dormant Attention Heads").
struct BackcopyConfig {
  Index symbols = 64;  ///< different tokens after the first
  Index triggers = 3;  ///< how many of them repeat the token before

  Index vocab_size() const { return 1 + symbols; }
};

struct RunConfig {
  std::string name = "run";
  std::string arm;  ///< of the sweep it belongs to; empty: none, reports then call it `name`
  std::uint64_t seed = 1;
  std::string out;     ///< empty: runs/<name>
  std::string claims;  ///< XXH3 of the claims file that a sweep was started with; empty: none
};

/// What the tokens are: the bytes of files, token files, or a task that is generated.
enum class DataKind { text, tokens, needles, mqar, backcopy };

/// Whether data of this kind are a generated task, of which as many batches as wanted can be made.
constexpr bool is_task(DataKind kind) { return kind != DataKind::text && kind != DataKind::tokens; }

/// What is done about a spike before it changes the weights (train/run/loop/spike_guard.h).
enum class OnSpike {
  none,      ///< nothing
  zclip,     ///< the gradient is clipped to what the norms before it let expect
  skip_step  ///< the step changes nothing
};

constexpr auto names_of(DataKind) {
  using enum DataKind;
  return std::to_array<Named<DataKind>>({{"text", text},
                                         {"tokens", tokens},
                                         {"needles", needles},
                                         {"mqar", mqar},
                                         {"backcopy", backcopy}});
}
constexpr auto names_of(OnSpike) {
  using enum OnSpike;
  return std::to_array<Named<OnSpike>>(
      {{"none", none}, {"zclip", zclip}, {"skip_step", skip_step}});
}

struct DataConfig {
  DataKind type = DataKind::text;
  std::vector<std::string> path;  ///< files or globs; empty: the Eigen headers of the build
  std::vector<std::string> val_path = {};  ///< likewise, to validate on; empty: a part of `path`
  Index seq_len = 256;
  Index batch_size = 16;
  Index eos_token_id = -1;  ///< the token that ends a document; -1: no documents
  double val_fraction = 0.05;
  NeedlesConfig needles{};  ///< read if kind is "needles"; the others likewise
  MqarConfig mqar{};
  BackcopyConfig backcopy{};
};

/// At most so many batches of text or tokens are read after the last step by default.
inline constexpr Index kFinalEvalBatches = 1000;

struct TrainConfig {
  Index steps = 500;
  Index eval_interval = 100;  ///< 0: only at the end
  Index eval_batches = 8;
  Index final_eval_batches = 0;   ///< after the last step; 0: kFinalEvalBatches or eval_batches
  Index checkpoint_interval = 0;  ///< 0: only at the end
  Index keep_last = 0;            ///< checkpoints; 0: all
  Index keep_interval = 0;        ///< steps whose checkpoints stay beside them; 0: none
  bool keep_best = false;         ///< write and keep that of the lowest validation loss
  std::string init_from = {};     ///< checkpoint or run whose weights it begins with; empty: drawn
  Index gradient_accumulation_steps = 1;
  ActivationCheckpointing activation_checkpointing = ActivationCheckpointing::none;
  Precision precision = Precision::full;
  Engine gemm = Engine::fast;
  bool flush_subnormals = true;      ///< in f32; f64 never does
  double gradient_ramp = 1;          ///< a positive control: gradient_ramp_at()
  OnSpike on_spike = OnSpike::none;  ///< key optim.on_spike
};

/// Logging, and what counts as a spike (train/stats/spikes.h).
struct LogConfig {
  Index param_grad_norms_interval = 10;  ///< gradient norm of each parameter; 0: only at the end
  Index diagnostics_interval = 50;       ///< 0: only at the end
  Index diagnostics_sequences = 2;       ///< validation sequences they measure
  Index sample_interval = 0;             ///< steps; 0: no text is written
  std::string sample_prompt = "\n";
  Index sample_tokens = 100;
  bool tensorboard = false;  ///< event files beside metrics.jsonl
  stats::SpikeDefinition spike_rule = stats::SpikeDefinition::median;
  Index spike_window = 0;      ///< 0: the rule's own, as in the next two
  double spike_threshold = 0;  ///< standard deviations; median takes no other than its own
  Index spike_min_history = 0;
};

struct Config {
  RunConfig run;
  ModelConfig model;
  DataConfig data;
  OptimConfig optim;
  TrainConfig train;
  LogConfig log;
};

/// The engine of train.gemm. Throws ConfigError if it cannot be had in this program or with this
/// precision.
Engine engine_of(const Config& config);

/// The precision of train.precision. Throws ConfigError if it cannot be had on this machine.
Precision precision_of(const Config& config);

/// What the gradient of a step is multiplied by: 1 up to half of the steps, from there on a line
/// that reaches train.gradient_ramp at the last step. The loss that is logged is not.
inline double gradient_ramp_at(const TrainConfig& train, Index step) {
  const double past_half = 2 * static_cast<double>(step) / static_cast<double>(train.steps) - 1;
  return 1 + (train.gradient_ramp - 1) * std::max(past_half, 0.0);
}

/// How many batches the validation after a step reads, of `available` ones: train.eval_batches;
/// after the last step train.final_eval_batches or, where that is 0, kFinalEvalBatches, of a task
/// train.eval_batches.
inline Index batches_to_validate(const Config& config, Index step, Index available) {
  const TrainConfig& train = config.train;
  const Index by_default = is_task(config.data.type) ? train.eval_batches : kFinalEvalBatches;
  const Index last = train.final_eval_batches > 0 ? train.final_eval_batches : by_default;
  return std::min(step == train.steps ? last : train.eval_batches, available);
}

/// What counts as a spike; whether the rule is possible, stats::unsupported_reason says.
inline stats::SpikeRule spike_rule_of(const LogConfig& log) {
  return stats::make_spike_rule(log.spike_rule, log.spike_window, log.spike_threshold,
                                log.spike_min_history);
}

}  // namespace difftape::run
