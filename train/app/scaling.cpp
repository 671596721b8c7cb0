#include "train/app/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "core/error.h"
#include "layers/cost.h"
#include "optim/shards.h"
#include "optim/tree_sum.h"
#include "train/run/loop/leaves.h"
#include "train/run/loop/step.h"
#include "train/run/loop/step_memory.h"
#include "train/stats/descriptive.h"
#include "train/system/memory.h"

namespace difftape::app {

Traffic traffic_of(const ParameterSet& parameters, const OptimConfig& optim, Index leaves,
                   Index processes) {
  const Shards shards(parameters, RuleSet(optim), processes);
  std::vector<double> owned(processes), owned_embedding(processes), parts(processes);
  for (const Parameter& p : parameters) {
    for (const Piece& piece : shards.pieces(p.position)) {
      owned[piece.owner] += static_cast<double>(piece.count);
      if (p.position == 0) owned_embedding[piece.owner] += static_cast<double>(piece.count);
    }
  }
  double all = 0, all_parts = 0;
  for (Index p = 0; p < processes; ++p) {
    parts[p] = static_cast<double>(aligned_ranges(leaves_of(leaves, processes, p)).size());
    all += owned[p];
    all_parts += parts[p];
  }
  Traffic most;
  const auto others = static_cast<double>(processes - 1);
  const auto embedding = static_cast<double>(parameters[0].shape.size());
  for (Index p = 0; p < processes; ++p) {
    const double sent = parts[p] * (all - owned[p]), received = owned[p] * (all_parts - parts[p]);
    most.gradients = std::max({most.gradients, sent, received});
    most.weights = std::max({most.weights, owned[p] * others, all - owned[p]});
    most.sent = std::max(most.sent, sent + owned[p] * others);
    most.owned = std::max(most.owned, owned[p]);
    most.received = std::max(most.received, received);
    most.last_gradients =
        std::max({most.last_gradients, parts[p] * (embedding - owned_embedding[p]),
                  owned_embedding[p] * (all_parts - parts[p])});
  }
  return most;
}

Prediction predict(const Traffic& traffic, Index leaves, Index processes, double leaf_flops,
                   const ClusterSpeed& speed) {
  const double leaf = leaf_flops / speed.flops;
  const LeafSpan most = leaves_of(leaves, processes, 0);
  Prediction step{static_cast<double>(most.end - most.begin) * leaf};
  if (processes == 1) return step;
  const double element = sizeof(real) / speed.bandwidth;
  // Messages of gradients, of weights, and of three all-reduces: losses, norms, requests.
  const auto rounds =
      static_cast<double>(std::bit_width(static_cast<std::uint64_t>(processes - 1)));
  step.exchange =
      std::max(element * traffic.gradients - leaf * 2 / 3, element * traffic.last_gradients) +
      element * traffic.weights + (2 + 3 * rounds) * speed.latency;
  return step;
}

namespace {

/// Returns the configuration with fewer micro-batches, and leaves of the same size.
run::Config shortened(run::Config config) {
  Index& micros = config.train.gradient_accumulation_steps;
  micros = std::min(micros, run::kLeavesPerStep);
  return config;
}

}  // namespace

double measured_flops(const run::Config& config) {
  run::Config one = shortened(config);
  one.train.init_from.clear();
  try {
    run::require_memory(one, 1, system::free_memory());
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}; or give --rate, so that nothing is measured", error.what()));
  }
  const run::DataConfig& data = one.data;
  run::Batch batch{data.batch_size, data.seq_len,
                   std::vector<std::int32_t>(data.batch_size * (data.seq_len + 1))};
  for (size_t i = 0; i < batch.tokens.size(); ++i)
    batch.tokens[i] = static_cast<std::int32_t>(i * 7919 % one.model.vocab_size);
  run::TrainState state(one, std::make_unique<run::FixedBatches>(std::vector{std::move(batch)},
                                                                 one.model.vocab_size));
  train_step(state);
  std::vector<double> seconds;
  for (int i = 0; i < 3; ++i) seconds.push_back(train_step(state).seconds);
  return model_cost(one.model, data.seq_len).train_flops_per_token *
         static_cast<double>(tokens_per_step(one)) / stats::quantile(seconds, 0.5);
}

Index most_gradients(Index leaves, Index processes) {
  Index most = 0;
  for (Index process = 0; process < processes; ++process) {
    const LeafSpan mine = leaves_of(leaves, processes, process);
    for (Index leaf = mine.begin; leaf < mine.end; ++leaf)
      most = std::max(most, std::ssize(aligned_ranges({mine.begin, leaf})) + 1);
  }
  return most;
}

system::Table scaling_table(const run::Config& config, std::span<const Index> processes,
                            const ClusterSpeed& speed) {
  const LanguageModel model(config.model);
  const Index leaves = config.train.gradient_accumulation_steps *
                       leaves_per_micro_batch(config, model.parameters().count());
  const run::StepMemory memory = run::step_memory(shortened(config));
  const auto parameters = static_cast<double>(model.parameters().count());
  const auto tokens = static_cast<double>(tokens_per_step(config));
  const double flops = tokens * model_cost(config.model, config.data.seq_len).train_flops_per_token;
  const double leaf_flops = flops / static_cast<double>(leaves);
  system::Table table{{{"", "processes"},
                       {"", "s per step"},
                       {"of which", "compute"},
                       {"of which", "exchange"},
                       {"", "tokens/s"},
                       {"", "efficiency"},
                       {"of one process", "memory, MB"},
                       {"of one process", "sends, MB"}},
                      {}};
  for (const Index count : processes) {
    const Traffic traffic = traffic_of(model.parameters(), config.optim, leaves, count);
    const Prediction step = predict(traffic, leaves, count, leaf_flops, speed);
    const auto sums = static_cast<double>(most_gradients(leaves, count));
    const double moments = static_cast<double>(memory.moments) * traffic.owned / parameters;
    const double bytes = static_cast<double>(memory.total() - memory.gradients - memory.moments) +
                         moments + (parameters * sums + traffic.received) * sizeof(real);
    table.rows.push_back({system::grouped(count), system::short_number(step.seconds()),
                          system::short_number(step.compute), system::short_number(step.exchange),
                          system::grouped(std::llround(tokens / step.seconds())),
                          fmt::format("{:.1f} %", 100 * flops / speed.flops /
                                                      static_cast<double>(count) / step.seconds()),
                          fmt::format("{:.1f}", bytes / 1e6),
                          fmt::format("{:.1f}", traffic.sent * sizeof(real) / 1e6)});
  }
  return table;
}

}  // namespace difftape::app
