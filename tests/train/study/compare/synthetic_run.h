#pragma once
// Run directories with synthetic curves, written by the same code as real ones.

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/random.h"
#include "core/real.h"
#include "core/tensor.h"
#include "tests/support/scratch.h"
#include "train/run/config/reader.h"
#include "train/run/config/writer.h"
#include "train/run/records/attention_maps.h"
#include "train/run/records/metrics.h"
#include "train/run/records/run_files.h"

namespace difftape::test {

struct SyntheticRun {
  std::string name = "softmax";
  std::string kind = "softmax";
  double floor = 2.3;  ///< loss at the end
  Index steps = 500;
  Index spike_at = 0;    ///< 0: none
  Index diverge_at = 0;  ///< 0: never
  std::vector<std::string> command = {"difftape", "sweep", "configs/sweeps/quickstart.yaml"};
  Index seed = 1;
  std::string arm = "", lr = "0.001";             ///< as in the config
  run::RunState state = run::RunState::finished;  ///< unless it diverges
  std::string data = "text";                      ///< data.type
  int layers = 0;                                 ///< layers that log diagnostics every 20 steps
  Index maps = 0;        ///< attention maps per head: 0 none, 1, or 3 for two maps
  bool answers = false;  ///< logs accuracy, with a grid of it
  double best_loss = kNaN;
  double best_accuracy = kNaN;
  std::vector<std::pair<std::string, std::string>> config = {};  ///< more keys of it
};

inline void add_diagnostics(run::Metrics& metrics, const SyntheticRun& run, Index step) {
  const RandomStream noise(8, run.name);
  const double progress = static_cast<double>(step) / static_cast<double>(run.steps);
  for (int layer = 0; layer < run.layers; ++layer) {
    const std::string l = "/" + std::to_string(layer);
    const double x = 1 + layer + 0.1 * noise.normal(static_cast<std::uint64_t>(step * 8 + layer));
    metrics.emplace_back("attn/context_rms" + l, 0.2 * x * (1 + progress));
    metrics.emplace_back("attn/sink_rate" + l,
                         std::round(4 * std::min(1.0, 0.25 * x * progress)) / 4);
    metrics.emplace_back("attn/logit_max" + l, x * std::exp(4 * progress));
    metrics.emplace_back("act/max_over_median" + l, 3 + 20 * x * progress);
    metrics.emplace_back("act/kurtosis" + l, 1 + x * std::exp(2 * progress));
    if (run.maps == 3) metrics.emplace_back("attn/lambda" + l, 0.5 + 0.05 * x * progress);
  }
}

inline void add_answers(run::Metrics& metrics, double progress) {
  metrics.emplace_back("val/accuracy", 0.9 * progress);
  metrics.emplace_back("task/exact_match", 0.8 * progress);
  for (const int needles : {1, 2, 4, 12}) {
    for (const int depth : {0, 25, 50, 75, 100}) {
      metrics.emplace_back("task/accuracy/" + std::to_string(needles) + "/" + std::to_string(depth),
                           progress * (1 - 0.05 * needles) * (0.6 + 0.004 * depth));
    }
  }
}

/// Causal maps whose rows add up to 1, (heads, S, T, T); head h attends to the first token h times
/// more.
inline Tensor attention_maps(Index heads, Index maps, Index tokens) {
  Tensor result = Tensor::zeros({heads, maps, tokens, tokens});
  const RandomStream noise(9, "maps");
  std::uint64_t draw = 0;
  for (Index row = 0; row < heads * maps * tokens; ++row) {
    const Index query = row % tokens, head = row / (maps * tokens);
    real* attention = result.row(row);
    double sum = 0;
    for (Index key = 0; key <= query; ++key) {
      attention[key] = static_cast<real>(std::exp(1.5 * noise.normal(draw++)));
      if (key == 0) attention[key] *= static_cast<real>(1 + 5 * head);
      if (query - key < 3) attention[key] *= 6;
      sum += attention[key];
    }
    for (Index key = 0; key <= query; ++key) attention[key] /= static_cast<real>(sum);
  }
  return result;
}

inline void write_metrics(const std::filesystem::path& path, const SyntheticRun& run) {
  const RandomStream noise(static_cast<std::uint64_t>(6 + run.seed), run.name);
  run::MetricsWriter writer(path);
  for (Index step = 1; step <= run.steps; ++step) {
    const double t = static_cast<double>(step), progress = t / static_cast<double>(run.steps);
    const auto i = static_cast<std::uint64_t>(step);
    double loss = run.floor + 3.2 * std::exp(-8 * progress) + 0.06 * noise.normal(2 * i);
    double grad = (0.4 + 2 * std::exp(-t / 30)) * std::exp(0.15 * noise.normal(2 * i + 1));
    if (step == run.spike_at) loss += 4, grad *= 40;
    if (step == run.diverge_at) loss = kNaN;
    run::Metrics metrics = {{"train/loss", loss},
                            {"optim/grad_norm", grad},
                            {"optim/lr", 1e-3 * (1 - progress)},
                            {"throughput/tokens_per_sec", 41000 + 500 * noise.normal(i)}};
    if (step % (run.steps / 10) == 0) {
      metrics.emplace_back("val/loss", run.floor + 3.3 * std::exp(-8 * progress) + 0.03);
      if (run.answers) add_answers(metrics, progress);
    }
    if (step % 20 == 0) add_diagnostics(metrics, run, step);
    writer.write(step, metrics);
    if (step == run.diverge_at) return;
  }
}

inline std::filesystem::path write_run(const std::filesystem::path& dir, const SyntheticRun& run) {
  run::create_run_dir(dir);
  nlohmann::ordered_json data = {{"type", run.data},
                                 {"files", {"a.txt", "b.txt", "c.txt", "d.txt", "e.txt"}}};
  if (!std::isnan(run.best_loss)) data["best_loss"] = run.best_loss;
  if (!std::isnan(run.best_accuracy)) data["best_accuracy"] = run.best_accuracy;
  run::Config config;
  config.model.d_model = 128;
  config.model.num_layers = 4;
  config.optim.min_lr = 0;
  config.run.name = run.name;
  config.run.arm = run.arm;
  config.run.seed = static_cast<std::uint64_t>(run.seed);
  std::vector<std::pair<std::string, std::string>> keys = {
      {"data.type", run.data}, {"optim.lr", run.lr}, {"model.attention.kind", run.kind}};
  keys.insert(keys.end(), run.config.begin(), run.config.end());
  for (const auto& [key, value] : keys) run::set_value(config, key, value);
  if (config.data.type == run::DataKind::needles)
    config.model.vocab_size = config.data.needles.vocab_size();
  put(dir / "config.yaml", run::to_yaml(config));
  run::write_env(
      dir, run.command,
      {{"build", {{"version", "0.1.0"}, {"commit", "0123abcd"}, {"compiler", "GCC 12.2.0"}}},
       {"data", data}});
  write_metrics(dir / "metrics.jsonl", run);
  if (run.maps > 0) {
    run::AttentionMaps maps{run.steps, {}};
    for (int layer = 0; layer < 2; ++layer) {
      maps.layers.push_back(attention_maps(4, run.maps, 64));
    }
    write_attention_maps(dir / run::kMapsFile, maps);
  }
  run::RunStatus status{.state = run.state,
                        .step = run.steps,
                        .steps = run.steps,
                        .exit_code = 0,
                        .parameters = 820224,
                        .tokens_per_step = 4096};
  if (run.diverge_at > 0) {
    status.state = run::RunState::diverged;
    status.step = run.diverge_at;
    status.diverged = {run.diverge_at, "train/loss", ""};
    status.exit_code = 86;
  }
  run::write_status(dir, status);
  return dir;
}

/// A sweep of two or three kinds over learning rates and seeds; at the largest rate some diverge.
inline std::vector<std::filesystem::path> write_sweep(const std::filesystem::path& dir,
                                                      std::size_t lrs, int seeds, Index steps) {
  const std::vector<std::string> all = {"0.0003", "0.001", "0.003", "0.01", "0.03", "0.1", "0.3"};
  std::vector<std::filesystem::path> dirs;
  for (const char* kind : {"softmax", "diff_v1", "diff_v2"}) {
    const std::string arm = kind;
    for (std::size_t lr = 0; lr < lrs; ++lr) {
      for (int seed = 1; seed <= seeds; ++seed) {
        const double far = std::abs(static_cast<double>(lr) - 2.0);
        SyntheticRun run{.name = arm + "-lr" + all[lr] + "-seed" + std::to_string(seed),
                         .kind = kind,
                         .floor = (arm == "softmax"   ? 2.3
                                   : arm == "diff_v1" ? 2.34
                                                      : 2.26) +
                                  0.12 * far + 0.01 * seed,
                         .steps = steps,
                         .seed = seed,
                         .arm = arm,
                         .lr = all[lr],
                         .layers = 4,
                         .maps = arm == "softmax" ? 1 : 3,
                         .best_loss = 1.9};
        if (seed == 2) run.spike_at = steps / 2;
        if (lr + 2 > lrs && lrs > 1 && seed > (arm == "diff_v2" ? 2 : 1)) {
          run.diverge_at = steps / 3;
        }
        dirs.push_back(write_run(dir / run.name, run));
      }
    }
  }
  return dirs;
}

}  // namespace difftape::test
