#include "train/run/loop/data_parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/digest.h"
#include "core/distributed.h"
#include "core/error.h"
#include "core/gemm_backend.h"
#include "core/platform.h"
#include "train/run/config/reader.h"
#include "train/run/config/writer.h"
#include "train/run/loop/continuation.h"
#include "train/system/files.h"

namespace difftape::run {

void require_shares(const Config& config, Index processes) {
  const Index micros = config.train.gradient_accumulation_steps;
  if (processes <= micros) return;
  const Index sequences = config.data.batch_size * micros;
  std::string remedy =
      fmt::format("raise data.batch_size: a step has only {} sequences", sequences);
  for (Index n = processes; n <= sequences; ++n) {
    if (sequences % n != 0) continue;
    remedy = fmt::format(
        "set train.gradient_accumulation_steps to {} and data.batch_size to {}, for the same {} "
        "sequences per step",
        n, sequences / n, sequences);
    break;
  }
  throw ConfigError(
      fmt::format("train.gradient_accumulation_steps: {} processes share the micro-batches of a "
                  "step, but it has {}; start at most {}, or {}",
                  processes, micros, micros, remedy));
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
  if (const Other other = first_other(system::read_text("/proc/self/exe")); other.process > 0)
    refuse<UsageError>(other, "runs another build of the program", "; start the same binary");
  const std::string engine = fmt::format("{}, bfloat16 {}, vectors {}", gemm_backend(),
                                         bf16_backend_name(), build_info().vectors);
  if (const Other other = first_other(engine); other.process > 0) {
    refuse<UsageError>(other, "uses another GEMM engine",
                       fmt::format(": {}, not {}; set train.gemm to portable", other.text, engine));
  }
  if (const Other other = first_other(to_yaml(state.config)); other.process > 0) {
    const Config there = config_from_yaml(other.text, "");
    refuse<ConfigError>(other, "has another configuration",
                        ": " + in_words(differences(there, state.config)) +
                            "; start all processes with the same configuration");
  }
  if (const Other other = first_other(state.data->info().dump()); other.process > 0)
    refuse<DataError>(other, "has other data",
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
