#pragma once
// The configuration of a training run as plain values. fields.cpp and model_fields.cpp list every
// key with its range and meaning.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/gemm_backend.h"
#include "core/names.h"
#include "core/real.h"
#include "layers/model_config.h"
#include "optim/optim_config.h"

namespace difftape::run {

// Sizes of the generated tasks. The head of train/run/data/tasks/<type>.cpp defines each task.

/// Needle-in-a-haystack: facts "city -> number" in filler (V1 paper, section 3.4).
struct NeedlesConfig {
  Index cities = 64;
  std::vector<Index> facts{1, 2, 4, 6};    ///< N, one item per setting
  std::vector<Index> queries{1, 2, 2, 2};  ///< R of the same settings
  Index digits = 1;                        ///< tokens per number
  Index filler = 16;                       ///< number of different filler tokens

  /// Number of answer positions in validation: 0, 25, 50, 75 and 100 % of the context.
  static constexpr Index kDepths = 5;
  /// Tokens of a fact: a city and its digits.
  Index fact_tokens() const { return 1 + digits; }
  /// Tokens of a question and its answer: marker, city and digits.
  Index question_tokens() const { return 2 + digits; }
  Index vocab_size() const { return 1 + 10 + cities + filler; }
};

/// Multi-query associative recall (Arora et al. 2023, "Zoology").
struct MqarConfig {
  Index keys = 64;          ///< number of different keys
  Index values = 64;        ///< number of different values
  Index pairs = 4;          ///< number of key-value pairs, D in the paper
  double gap_power = 0.01;  ///< exponent of the gap distribution, a in the paper

  Index vocab_size() const { return keys + values; }
};

/// Bigram-backcopy (Guo et al. 2024, "Active-Dormant Attention Heads").
struct BackcopyConfig {
  Index symbols = 64;  ///< number of different tokens after the first
  Index triggers = 3;  ///< how many of them are followed by a copy of the previous token

  Index vocab_size() const { return 1 + symbols; }
};

struct RunConfig {
  std::string name = "run";
  std::string arm;  ///< arm of the sweep; empty: not in a sweep, reports use `name`
  std::uint64_t seed = 1;
  std::string out;     ///< empty: runs/<name>
  std::string claims;  ///< XXH3 digest of the sweep's claims file; empty: none
};

/// Source of the tokens: bytes of text files, token files, or a generated task.
enum class DataKind { text, tokens, needles, mqar, backcopy };

/// Returns true for generated tasks, which have an unlimited number of batches.
constexpr bool is_task(DataKind kind) { return kind != DataKind::text && kind != DataKind::tokens; }

/// Returns the unit of losses: "nats per byte" for text, whose tokens are bytes, else "nats per
/// token".
constexpr const char* loss_unit(DataKind type) {
  return type == DataKind::text ? "nats per byte" : "nats per token";
}

constexpr auto names_of(DataKind) {
  using enum DataKind;
  return std::to_array<Named<DataKind>>({{"text", text},
                                         {"tokens", tokens},
                                         {"needles", needles},
                                         {"mqar", mqar},
                                         {"backcopy", backcopy}});
}

struct DataConfig {
  DataKind type = DataKind::text;
  std::vector<std::string> path;  ///< files or globs; empty: the Eigen headers of the build
  std::vector<std::string> val_path = {};  ///< validation files; empty: a split of `path`
  Index seq_len = 256;
  Index batch_size = 16;
  Index eos_token_id = -1;  ///< the token that ends a document; -1: no documents
  double val_fraction = 0.05;
  NeedlesConfig needles{};  ///< used if `type` is needles; the next two likewise
  MqarConfig mqar{};
  BackcopyConfig backcopy{};
};

struct TrainConfig {
  Index steps = 500;
  Index eval_interval = 100;  ///< 0: only at the end
  Index eval_batches = 8;
  Index final_eval_batches = 0;   ///< after the last step; 0: all, or eval_batches of a task
  Index checkpoint_interval = 0;  ///< 0: only at the end
  /// Also after so many minutes without a checkpoint; the next one replaces it. 0: never.
  Index keep_last = 0;         ///< number of newest checkpoints to keep; 0: all
  std::string init_from = {};  ///< checkpoint or run with the initial weights; empty: random
  Index gradient_accumulation_steps = 1;
  ActivationCheckpointing activation_checkpointing = ActivationCheckpointing::none;
  Precision precision = Precision::full;
  Engine gemm = Engine::fast;
  bool flush_subnormals = true;  ///< in f32 only
  double gradient_ramp = 1;      ///< positive control, see gradient_ramp_at()
};

struct LogConfig {
  Index param_grad_norms_interval = 10;  ///< 0: only at the end
  Index diagnostics_interval = 50;       ///< 0: only at the end
  Index diagnostics_sequences = 2;       ///< validation sequences that diagnostics read
  bool tensorboard = false;              ///< event files beside metrics.jsonl
};

struct Config {
  RunConfig run;
  ModelConfig model;
  DataConfig data;
  OptimConfig optim;
  TrainConfig train;
  LogConfig log;
};

/// Returns the engine of train.gemm. Throws ConfigError if this build, this machine or the
/// precision does not support it.
Engine engine_of(const Config& config);

/// Returns the precision of train.precision. Throws ConfigError if this machine does not support
/// it.
Precision precision_of(const Config& config);

/// Returns the factor on the gradient of a step: 1 in the first half of the run, then a linear rise
/// to train.gradient_ramp at the last step. The logged loss is not multiplied.
inline double gradient_ramp_at(const TrainConfig& train, Index step) {
  const double past_half = 2 * static_cast<double>(step) / static_cast<double>(train.steps) - 1;
  return 1 + (train.gradient_ramp - 1) * std::max(past_half, 0.0);
}

/// Returns the number of batches that the validation after a step reads, at most `available`.
/// The final validation reads train.final_eval_batches; if that is 0, it reads all text or tokens.
/// All others read train.eval_batches.
inline Index batches_to_validate(const Config& config, Index step, Index available) {
  const TrainConfig& train = config.train;
  const Index by_default = is_task(config.data.type) ? train.eval_batches : available;
  const Index last = train.final_eval_batches > 0 ? train.final_eval_batches : by_default;
  return std::min(step == train.steps ? last : train.eval_batches, available);
}

}  // namespace difftape::run
