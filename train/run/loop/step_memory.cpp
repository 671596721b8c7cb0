#include "train/run/loop/step_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/pool.h"
#include "train/run/config/model_memory.h"
#include "train/run/loop/leaves.h"
#include "train/run/loop/step.h"
#include "train/system/memory.h"

namespace difftape::run {
namespace {

/// Returns data with one batch of the configured size, whose tokens are all 0.
std::unique_ptr<Dataset> zero_tokens(const DataConfig& data) {
  std::vector<std::int32_t> tokens(data.batch_size * (data.seq_len + 1));
  Batch batch{data.batch_size, data.seq_len, std::move(tokens)};
  return std::make_unique<FixedBatches>(std::vector{std::move(batch)}, 1);
}

/// The end of an op or pullback.
struct End {
  size_t blocks;   ///< number of blocks allocated so far
  bool gradients;  ///< the remaining blocks of the op are gradients
};

/// Returns the field of `memory` for block `number`, which is live at the peak. `ends` are the ends
/// of all ops of the step.
Index& use_of(size_t number, const pool::DryRun::Block& block, const std::vector<End>& ends,
              StepMemory& memory) {
  const auto end = std::ranges::upper_bound(ends, number, {}, &End::blocks);
  if (end == ends.end() || block.returned <= end->blocks) return memory.scratch;
  return end->gradients ? memory.activation_gradients : memory.activations;
}

StepMemory memory_of(TrainState& state, const pool::DryRun& dry) {
  train_step(state);  // fills the rotary table
  const auto held = static_cast<Index>(pool::stats().bytes_in_use);
  const size_t first = dry.blocks().size();
  std::vector<End> ends;
  const auto end_of = [&](bool gradients) { ends.push_back({dry.blocks().size(), gradients}); };
  train_step(state, {.on_value =
                         [&](std::string_view op, std::string_view, const Tensor&) {
                           end_of(op == "cross_entropy");  // it computes its gradients in forward
                         },
                     .on_gradient = [&](auto&&...) { end_of(true); }});

  StepMemory memory;
  const Index sets = 1 + state.gradient_sums.front().kept();
  memory.gradients = sets * state.model.parameters().count() * static_cast<Index>(sizeof(real));
  memory.moments = state.optimizer.state_size() * static_cast<Index>(sizeof(real));
  memory.weights = held - memory.gradients - memory.moments;
  const auto& blocks = dry.blocks();
  const auto in_step = blocks.begin() + first;
  const auto peak = std::max_element(
      in_step, blocks.end(), [](const auto& a, const auto& b) { return a.in_use < b.in_use; });
  const auto taken = static_cast<size_t>(peak - blocks.begin()) + 1;
  for (size_t i = first; i < taken; ++i) {
    if (blocks[i].returned < taken) continue;
    use_of(i, blocks[i], ends, memory) += static_cast<Index>(blocks[i].bytes);
  }
  return memory;
}

/// Returns f(). Throws ConfigError if f takes more memory than a process has addresses.
template <class F>
auto within_address_space(F&& f) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    throw ConfigError(
        "a training step of this model exceeds the address space of a process; lower the sizes of "
        "the model, data.batch_size or data.seq_len");
  }
}

}  // namespace

StepMemory step_memory(const Config& config) {
  const pool::DryRun dry;
  Config possible = config;
  possible.train.precision = TrainConfig().precision;
  return within_address_space([&] {
    TrainState state(possible, zero_tokens(config.data));
    state.precision = config.train.precision;
    return memory_of(state, dry);
  });
}

namespace {

/// A lower bound for the memory of a step, which takes no time: a dry run takes minutes if the
/// sizes are large enough.
struct LeastBytes {
  double model;   ///< weights and their gradients
  double inputs;  ///< inputs of all blocks for a leaf
  double tokens;  ///< all micro-batches, which a step reads before it computes
  double total() const { return model + inputs + tokens; }
};

LeastBytes least_bytes(const Config& config) {
  const DataConfig& data = config.data;
  const auto product = [](std::initializer_list<Index> sizes) {
    double all = 1;
    for (const Index size : sizes) all *= static_cast<double>(size);
    return all;
  };
  const auto sequences = std::max<Index>(1, data.batch_size / kLeavesPerStep);
  return {model_bytes(config.model),
          product({sequences, data.seq_len, config.model.d_model, config.model.num_layers}) *
              sizeof(real),
          product({config.train.gradient_accumulation_steps, data.batch_size, data.seq_len + 1}) *
              sizeof(std::int32_t)};
}

/// Returns the memory of a step. That of many sequences is extrapolated from few, since the time of
/// a dry run grows with them: memory grows in proportion to the sequences of a leaf, and by at most
/// one set of gradients whenever the number of micro-batches doubles.
double bytes_of(const Config& config) {
  constexpr Index kMicroBatches = 8;
  if (const Index micros = config.train.gradient_accumulation_steps; micros > kMicroBatches) {
    Config fewer = config;
    fewer.train.gradient_accumulation_steps = kMicroBatches;
    const double doublings = std::ceil(std::log2(static_cast<double>(micros) / kMicroBatches));
    return bytes_of(fewer) + doublings * model_bytes(config.model) / 2;
  }
  constexpr Index kTokens = Index{1} << 17;  // of the smaller batch, in a fraction of a second
  const Index leaf = std::max<Index>(1, kTokens / kLeavesPerStep / config.data.seq_len);
  Config small = config, twice = config;
  small.data.batch_size = leaf * kLeavesPerStep;
  twice.data.batch_size = 2 * small.data.batch_size;
  const auto total = [](const Config& of) { return static_cast<double>(step_memory(of).total()); };
  if (config.data.batch_size <= twice.data.batch_size) return total(config);
  const double first = total(small), more = total(twice) - first;
  const auto times =
      static_cast<double>(config.data.batch_size) / static_cast<double>(small.data.batch_size);
  return first + more * (times - 1);
}

/// Returns what to lower in a configuration whose step needs `bytes`, more than `share`.
std::string remedy_of(const Config& config, double bytes, double share) {
  const LeastBytes least = least_bytes(config);
  if (least.model > share) return sizes_to_lower(config.model);
  if (least.tokens > share && config.train.gradient_accumulation_steps > 1)
    return "train.gradient_accumulation_steps, data.batch_size or data.seq_len";
  const auto needed = [&](const Config& of) {
    const double floor = least_bytes(of).total();
    return floor > share ? floor : bytes_of(of);
  };
  std::string text;
  Config halved = config;
  halved.data.batch_size = std::max<Index>(1, config.data.batch_size / 2);
  constexpr double kWorthwhile = 0.9;  // a leaf may have one sequence whatever the batch
  if (needed(halved) < kWorthwhile * bytes) text += "data.batch_size, ";
  text += "data.seq_len or the sizes of the model";
  if (config.train.activation_checkpointing == ActivationCheckpointing::none) {
    Config checkpointed = config;
    checkpointed.train.activation_checkpointing = ActivationCheckpointing::blocks;
    if (const double less = needed(checkpointed); less < bytes) {
      text += fmt::format(", or set train.activation_checkpointing to blocks, which needs {}",
                          system::describe_bytes(less));
    }
  }
  return text;
}

}  // namespace

void require_memory(const Config& config, Index processes, std::optional<std::uint64_t> free) {
  if (!free) return;
  const auto share = static_cast<double>(*free) / static_cast<double>(processes);
  const double least = least_bytes(config).total();
  const bool at_least = least > share;
  const double bytes = at_least ? least : bytes_of(config);
  const double all = static_cast<double>(processes) * bytes;
  if (all <= static_cast<double>(*free)) return;
  const bool several = processes > 1;
  throw ConfigError(
      fmt::format("{}{} {} {}{} of memory, but {} are free; lower {}{}",
                  config.run.name.empty() ? "" : config.run.name + ": ",
                  several ? fmt::format("{} processes", processes) : "a training step",
                  several ? "need" : "needs", at_least ? "more than " : "",
                  system::describe_bytes(all), system::describe_bytes(static_cast<double>(*free)),
                  several ? "the number of processes (--jobs of a sweep), " : "",
                  remedy_of(config, bytes, share)));
}

}  // namespace difftape::run
