#pragma once
// Compares the cost of a configuration's model for each kind of attention.

#include <string>
#include <vector>

#include "layers/cost.h"
#include "layers/model_config.h"
#include "train/run/config/config.h"
#include "train/run/loop/step_memory.h"
#include "train/system/text_table.h"

namespace difftape::app {

/// Returns `model` with the preset of a kind; fields that no kind sets are kept (plain_kind of
/// layers/attention/kinds.h). The kind "configured" returns the model unchanged.
ModelConfig with_kind(const ModelConfig& model, const std::string& kind);

/// Cost of the model with one kind of attention.
struct KindCost {
  std::string kind;
  ModelCost cost;
  /// Memory of a step as configured, and with activation_checkpointing: blocks.
  run::StepMemory memory{}, memory_with_checkpointing{};
};

struct Plan {
  std::vector<KindCost> kinds;
  std::vector<std::string> left_out;  ///< one line per kind that this model does not support
};

/// Returns the costs of the given kinds; of all kinds if the list is empty. Throws UsageError for
/// an unknown kind, and ConfigError if the configuration's own kind is given and cannot be built,
/// or if no kind can.
Plan make_plan(const run::Config& config, std::vector<std::string> kinds = {});

/// Returns a table with one column per kind. Parameters are compared with softmax and softmax_2h if
/// the plan has them; softmax_2h has as many query heads as diff_v2 (Ye et al. 2026).
system::Table plan_table(const Plan& plan, const run::Config& config);

}  // namespace difftape::app
