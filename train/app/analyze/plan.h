#pragma once
// What the model of a configuration costs with each kind of attention, side by side.

#include <string>
#include <vector>

#include "layers/cost.h"
#include "layers/model_config.h"
#include "train/run/config/config.h"
#include "train/run/loop/step_memory.h"
#include "train/system/text_table.h"

namespace difftape::app {

/// Returns `model` with the preset of a kind; fields that no kind decides stay (plain_kind of
/// layers/attention/kinds.h). The kind "configured" is the model as it is.
ModelConfig with_kind(const ModelConfig& model, const std::string& kind);

struct KindCost {
  std::string kind;
  ModelCost cost;
  /// As configured, and with activation_checkpointing: blocks.
  run::StepMemory memory{}, memory_with_checkpointing{};
};

struct Plan {
  std::vector<KindCost> kinds;
  std::vector<std::string> left_out;  ///< a line for each kind that this model cannot have
};

/// The costs of the given kinds, of all if none is given. Throws UsageError for an unknown kind,
/// and ConfigError if the configuration's own kind is given and cannot be built, or if none can.
Plan make_plan(const run::Config& config, std::vector<std::string> kinds = {});

/// One column a kind. Parameters are compared with the kinds softmax and softmax_2h where the plan
/// has them; the latter has as many query heads as diff_v2 (Ye et al. 2026).
system::Table plan_table(const Plan& plan, const run::Config& config);

}  // namespace difftape::app
