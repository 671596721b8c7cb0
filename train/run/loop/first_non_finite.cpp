#include "train/run/loop/first_non_finite.h"

#include <fmt/format.h>

namespace difftape::run {

namespace {

/// Stores the name of the first op that is not finite in `found`, which must outlive the hook.
Tape::Hook hook_for(std::string& found) {
  return [&found](const char* op, std::string_view scope, Tape::Phase phase, const Tensor& seen) {
    if (!found.empty() || seen.all_finite()) return;
    found = fmt::format("{}{}{}, {}", op, scope.empty() ? "" : " in ", scope,
                        phase == Tape::Phase::forward ? "forward" : "backward");
  };
}

}  // namespace

std::string first_non_finite_op(TrainState& state, const MicroBatches& batches) {
  std::string found;
  accumulate_gradients(state, batches, hook_for(found));
  return found;
}

std::string first_non_finite_op_in_validation(TrainState& state) {
  std::string found;
  state.validate(hook_for(found));
  return found;
}

}  // namespace difftape::run
