#include "train/run/loop/data_parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/digest.h"
#include "core/distributed.h"
#include "core/error.h"
#include "core/gemm_backend.h"
#include "core/platform.h"
#include "layers/language_model.h"
#include "train/run/config/reader.h"
#include "train/run/config/writer.h"
#include "train/run/loop/continuation.h"
#include "train/run/loop/leaves.h"
#include "train/system/files.h"

namespace difftape::run {

namespace {

/// Returns a setting with at least as many leaves as processes, with as many sequences per step as
/// before if possible, and else with more micro-batches.
std::string more_leaves(const Config& config, Index parameters, Index processes) {
  const Index micros = config.train.gradient_accumulation_steps, batch = config.data.batch_size;
  const auto is_enough = [&](Index new_micros, Index new_batch) {
    Config other = config;
    other.train.gradient_accumulation_steps = new_micros;
    other.data.batch_size = new_batch;
    return new_micros * leaves_per_micro_batch(other, parameters) >= processes;
  };
  const Index sequences = micros * batch;
  for (Index n = micros + 1; n <= sequences; ++n) {
    if (sequences % n == 0 && is_enough(n, sequences / n))
      return fmt::format(
          "set train.gradient_accumulation_steps to {} and data.batch_size to {}, for the same {} "
          "sequences per step",
          n, sequences / n, sequences);
  }
  Index n = micros + 1;
  while (!is_enough(n, batch)) ++n;
  return fmt::format("set train.gradient_accumulation_steps to {}, for {} sequences per step", n,
                     n * batch);
}

}  // namespace

void require_shares(const Config& config, Index processes) {
  if (processes == 1) return;
  const auto parameters = static_cast<Index>(parameter_count(config.model));
  const Index leaves =
      config.train.gradient_accumulation_steps * leaves_per_micro_batch(config, parameters);
  if (processes <= leaves) return;
  const char* why = needs_whole_micro_batches(config.model)
                        ? " (losses of routers need whole micro-batches)"
                        : "";
  throw ConfigError(fmt::format(
      "data.batch_size: a step has {} sequences, which at most {} processes can share{}, "
      "but {} were started; start at most {}, or {}",
      config.train.gradient_accumulation_steps * config.data.batch_size, leaves, why, processes,
      leaves, more_leaves(config, parameters, processes)));
}

namespace {

/// The first process whose text differs from process 0, with its text.
struct Other {
  Index process = 0;  ///< 0: no process differs
  std::string text{};
};
Other first_other(const std::string& text) {
  const std::string here = digest_of(text);
  const std::vector<char> all = distributed::all_of(std::span<const char>(here));
  for (Index i = 1; i < distributed::count(); ++i) {
    const auto at = all.begin() + i * std::ssize(here);
    if (!std::equal(all.begin(), all.begin() + std::ssize(here), at))
      return {i, distributed::broadcast(text, i)};
  }
  return {};
}

template <class Error>
void refuse(const Other& other, std::string_view what, std::string_view details) {
  if (distributed::rank() > 0) return;
  throw Error(fmt::format("process {} {} than process 0{}", other.process, what, details));
}

}  // namespace

void require_same(const TrainState& state) {
  if (distributed::count() == 1) return;
  if (const Other other = first_other(system::read_text("/proc/self/exe")); other.process > 0)
    refuse<UsageError>(other, "runs a different build of the program", "; start the same binary");
  const std::string engine = fmt::format("{}, bfloat16 {}, vectors {}", gemm_backend(),
                                         bf16_backend_name(), build_info().vectors);
  if (const Other other = first_other(engine); other.process > 0) {
    refuse<UsageError>(other, "uses a different GEMM backend",
                       fmt::format(": {}, not {}; set train.gemm to portable", other.text, engine));
  }
  if (const Other other = first_other(to_yaml(state.config)); other.process > 0) {
    const Config there = config_from_yaml(other.text, "");
    refuse<ConfigError>(other, "has a different configuration",
                        ": " + in_words(differences(there, state.config)) +
                            "; start all processes with the same configuration");
  }
  if (const Other other = first_other(state.data->info().dump()); other.process > 0)
    refuse<DataError>(other, "has different data",
                      ": " + other.text + "; give all processes the same files");
}

StepRequests requests_of_any(const StepRequests& mine) {
  const std::array numbers{static_cast<int>(mine.stop), static_cast<int>(mine.save)};
  const std::vector<int> all = distributed::all_of(std::span<const int>(numbers));
  StepRequests any;
  for (std::size_t i = 0; i < all.size(); i += numbers.size()) {
    any.stop = std::max(any.stop, static_cast<system::Exit>(all[i]));
    any.save = any.save || all[i + 1] != 0;
  }
  return any;
}

}  // namespace difftape::run
