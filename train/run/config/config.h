#pragma once
// A whole training run as plain values. train/run/config/fields.cpp documents every key and its
// range.

#include <cstdint>
#include <string>
#include <vector>

#include "layers/activation_checkpointing.h"
#include "layers/model_config.h"
#include "optim/optim_config.h"
#include "train/run/config/names.h"
#include "train/run/config/task_config.h"
#include "train/stats/spikes.h"

namespace difftape::run {

struct RunConfig {
  std::string name = "run";
  std::string arm;  ///< of the sweep it belongs to; empty: none, reports then call it `name`
  std::uint64_t seed = 1;
  std::string out;  ///< empty: runs/<name>
};

/// What the tokens are: the bytes of files, token files, or a task that is generated.
enum class DataKind { text, tokens, needles, mqar, noisy_recall, backcopy };

}  // namespace difftape::run

template <>
inline constexpr auto difftape::kNames<difftape::run::DataKind> =
    std::to_array<difftape::Named<difftape::run::DataKind>>(
        {{"text", difftape::run::DataKind::text},
         {"tokens", difftape::run::DataKind::tokens},
         {"needles", difftape::run::DataKind::needles},
         {"mqar", difftape::run::DataKind::mqar},
         {"noisy_recall", difftape::run::DataKind::noisy_recall},
         {"backcopy", difftape::run::DataKind::backcopy}});

namespace difftape::run {

struct DataConfig {
  DataKind kind = DataKind::text;
  std::vector<std::string> path;  ///< files or globs; empty: the Eigen headers of the build
  Index seq_len = 256;
  Index batch_size = 16;
  Index eos_token_id = -1;  ///< the token that ends a document; -1: no documents
  double val_fraction = 0.05;
  NeedlesConfig needles{};  ///< read if kind is "needles"; the others alike
  MqarConfig mqar{};
  NoisyRecallConfig noisy_recall{};
  BackcopyConfig backcopy{};
};

struct TrainConfig {
  Index steps = 500;
  Index eval_every = 100;  ///< 0: only at the end
  Index eval_batches = 8;
  Index checkpoint_every = 0;  ///< 0: only at the end
  Index grad_accumulation = 1;
  ActivationCheckpointing activation_checkpointing = ActivationCheckpointing::none;
  Precision precision = Precision::full;
};

/// Logging, and what counts as a spike (train/stats/spikes.h).
struct LogConfig {
  Index parameters_every = 10;      ///< gradient norm of each parameter; 0: only at the end
  Index diagnostics_every = 50;     ///< 0: only at the end
  Index diagnostics_sequences = 2;  ///< validation sequences they measure
  stats::SpikeDefinition spike_rule = stats::SpikeDefinition::olmo2;
  Index spike_window = 0;      ///< 0: the rule's own, as in the next two
  double spike_threshold = 0;  ///< standard deviations
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

}  // namespace difftape::run
