#pragma once
// Do gradients of differential attention have the size of softmax's (Ye et al. 2024, appendix G)?
// Trains kinds of attention on the same data and compares the norms of their gradients, layer by
// layer and group by group of parameters.

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "autograd/parameter.h"
#include "train/run/config/config.h"

namespace difftape::app {

/// Parameters whose gradients are taken as one vector.
struct GradientGroup {
  static constexpr Index kAllLayers = -2, kOutside = -1;  // outside: embedding, final norm, head

  Index layer = 0;   ///< from 0, or one of the above
  int rank = 0;      ///< where the group stands in its layer
  std::string name;  ///< q_proj, k_proj, v_proj, o_proj, lambda, subln, ..., mlp, norms

  auto operator<=>(const GradientGroup&) const = default;
  /// "all", "-" or the number.
  std::string layer_name() const;
};
/// The group of a parameter, by its name.
GradientGroup gradient_group(const Parameter& parameter);

struct FlowRequest {
  std::vector<std::string> kinds;  ///< what is compared with the baseline
  std::vector<Index> steps;        ///< optimiser steps done before the gradient, ascending
  std::vector<Index> seeds;        ///< each trains every kind once
  std::function<void(const std::string&)> say = [](const std::string&) {};  ///< progress, a line
};

/// One number for every seed and step, row-major; NaN where training diverged before.
using SeedsBySteps = std::vector<double>;

struct KindFlow {
  std::string kind;
  Index parameters = 0;
  /// L2 norms of the gradient of one step's batch, before clipping.
  std::map<GradientGroup, SeedsBySteps> norms;
  SeedsBySteps loss;                  ///< of the same batches, nats per token
  std::vector<std::string> diverged;  ///< a line for each run that diverged
};

struct GradientFlow {
  std::vector<Index> steps;
  std::vector<Index> seeds;
  KindFlow baseline;
  std::vector<KindFlow> kinds;
};

/// Trains the baseline and every kind, the configuration otherwise as it is. Throws UsageError for
/// a request that cannot be met, ConfigError for a kind the model cannot have, and what data
/// throws.
GradientFlow measure_gradient_flow(const run::Config& config, const FlowRequest& request);

/// norm of `kind` / norm of the baseline for every seed and step; empty if the baseline has no such
/// group.
SeedsBySteps gradient_ratios(const GradientFlow& flow, const KindFlow& kind,
                             const GradientGroup& group);

/// What was measured, in words; a table with a row for each layer and group; for each kind and step
/// how far the ratios of single layers spread. With several seeds, means with 95 % t-intervals.
std::string describe_gradient_flow(const GradientFlow& flow);

/// /steps, /seeds, and for each kind /loss/<kind>, /norm/<kind>/<layer>/<group> and, but for the
/// baseline, /ratio/<kind>/<layer>/<group>, each (seeds, steps); <layer> is a number, "all" or
/// "outside". Attributes `config_yaml` and `baseline`. Throws OutputError.
void write_gradient_flow(const std::filesystem::path& path, const GradientFlow& flow,
                         const std::string& config_yaml);

}  // namespace difftape::app
