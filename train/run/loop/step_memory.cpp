#include "train/run/loop/step_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/pool.h"
#include "layers/language_model.h"
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

/// Returns a lower bound for the memory of a step: the weights, their gradients, and the inputs of
/// all blocks for a leaf. It needs no dry run, which takes minutes if the model is large enough.
double least_bytes(const Config& config) {
  const auto sequences = std::max<Index>(1, config.data.batch_size / kLeavesPerStep);
  const double tokens = static_cast<double>(sequences) * static_cast<double>(config.data.seq_len);
  const double inputs =
      tokens * static_cast<double>(config.model.d_model * config.model.num_layers);
  const pool::DryRun dry;  // weights without memory
  const auto weights = within_address_space(
      [&] { return static_cast<double>(LanguageModel(config.model).parameters().count()); });
  return (2 * weights + inputs) * sizeof(real);
}

/// Returns the memory of a step. That of a large batch is extrapolated from two smaller ones: it
/// grows in proportion to the sequences of a leaf, but the time of a dry run does so, too.
double bytes_of(const Config& config) {
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

}  // namespace

void require_memory(const Config& config, Index processes, std::optional<std::uint64_t> free) {
  if (!free) return;
  const auto share = static_cast<double>(*free) / static_cast<double>(processes);
  const auto needed = [&](const Config& of) {
    const double least = least_bytes(of);
    const double bytes = least > share ? least : bytes_of(of);
    return static_cast<double>(processes) * bytes;
  };
  const double bytes = needed(config);
  if (bytes <= static_cast<double>(*free)) return;
  const bool several = processes > 1;
  std::string text = fmt::format(
      "{}{} {} {}{} of memory, but {} are free; lower ",
      config.run.name.empty() ? "" : config.run.name + ": ",
      several ? fmt::format("{} processes", processes) : "a training step",
      several ? "need" : "needs", least_bytes(config) > share ? "more than " : "",
      system::describe_bytes(bytes), system::describe_bytes(static_cast<double>(*free)));
  if (several) text += "the number of processes (--jobs of a sweep), ";
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
  throw ConfigError(text);
}

}  // namespace difftape::run
