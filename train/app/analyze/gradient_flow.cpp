#include "train/app/analyze/gradient_flow.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/real.h"
#include "layers/cost.h"
#include "train/app/analyze/kinds.h"
#include "train/run/loop/step.h"

namespace difftape::app {

namespace {

/// Groups that every kind has come first and last, those of some kinds in between.
int rank_of(const std::string& name) {
  static const std::map<std::string, int> ranks{{"embedding", 0}, {"q_proj", 1}, {"k_proj", 2},
                                                {"v_proj", 3},    {"o_proj", 4}, {"mlp", 6},
                                                {"norms", 7},     {"head", 8}};
  const auto found = ranks.find(name);
  return found == ranks.end() ? 5 : found->second;
}

/// Adds the norms of a step's gradient to those of the groups, at one seed and step.
void record(const run::TrainState& state, const GradNorms& norms, size_t at, size_t size,
            KindFlow& flow) {
  std::map<GradientGroup, double> squares;
  size_t i = 0;
  for (const Parameter& parameter : state.model.parameters()) {
    GradientGroup group = gradient_group(parameter);
    const double norm = norms.per_parameter[i++];
    squares[group] += norm * norm;
    if (group.layer == GradientGroup::kOutside) continue;
    group.layer = GradientGroup::kAllLayers;
    squares[group] += norm * norm;
  }
  for (const auto& [group, sum] : squares) {
    SeedsBySteps& values = flow.norms[group];
    values.resize(size, kNaN);
    values[at] = std::sqrt(sum);
  }
}

/// Trains one kind from one seed up to the last step.
void train_kind(run::Config config, const FlowRequest& request, size_t seed, KindFlow& flow) {
  config.run.seed = static_cast<std::uint64_t>(request.seeds[seed]);
  run::TrainState state(config);
  take_initial_weights(state);
  flow.parameters = state.model.parameters().count();
  const size_t size = request.seeds.size() * request.steps.size();
  flow.loss.resize(size, kNaN);
  double first = 0, last = 0;
  for (Index done = 0; done <= request.steps.back(); ++done) {
    const run::Step step = train_step(state);
    if (step.diverged) {
      flow.diverged.push_back(fmt::format("{}, seed {}: diverged at step {}, {} is not finite",
                                          flow.kind, config.run.seed, step.step,
                                          step.diverged->quantity));
      request.say(flow.diverged.back());
      return;
    }
    last = step.loss;
    if (done == 0) first = step.loss;
    const auto wanted = std::ranges::find(request.steps, done);
    if (wanted == request.steps.end()) continue;
    const size_t at =
        seed * request.steps.size() + static_cast<size_t>(wanted - request.steps.begin());
    record(state, step.norms, at, size, flow);
    flow.loss[at] = step.loss;
  }
  request.say(
      fmt::format("{}, seed {}: loss {:.4f} at initialisation{}", flow.kind, config.run.seed, first,
                  request.steps.back() == 0
                      ? ""
                      : fmt::format(", {:.4f} after {} steps", last, request.steps.back())));
}

void require_possible(const run::Config& config, const FlowRequest& request) {
  const auto ascending = [](const auto& values) {
    return std::ranges::adjacent_find(values, std::greater_equal<>()) == values.end();
  };
  require_kinds(request.kinds);
  if (std::ranges::count(request.kinds, baseline_kind()) > 0 || request.kinds.empty()) {
    throw UsageError(fmt::format("--kinds: name kinds other than {}, which they are compared with",
                                 baseline_kind()));
  }
  if (request.steps.empty() || request.steps.front() < 0 || !ascending(request.steps)) {
    throw UsageError(
        "--steps counts the steps done before the gradient; need 0 or more, ascending");
  }
  if (request.steps.back() > config.train.steps) {
    throw UsageError(fmt::format("--steps: {} is beyond train.steps {}; raise it with --set",
                                 request.steps.back(), config.train.steps));
  }
  std::vector<Index> seeds = request.seeds;
  std::ranges::sort(seeds);
  if (seeds.empty() || seeds.front() < 0 || !ascending(seeds)) {
    throw UsageError("--seeds: need integers from 0, each once");
  }
  for (const std::string& kind : request.kinds) {
    const std::string why_invalid = unsupported_reason(with_kind(config.model, kind));
    if (!why_invalid.empty()) {
      throw ConfigError(fmt::format("{}: {}; choose other kinds with --kinds", kind, why_invalid));
    }
  }
}

KindFlow measure_kind(const run::Config& config, const FlowRequest& request,
                      const std::string& kind) {
  run::Config arm = config;
  arm.model = with_kind(config.model, kind);
  KindFlow flow;
  flow.kind = kind;
  for (size_t seed = 0; seed < request.seeds.size(); ++seed) {
    train_kind(arm, request, seed, flow);
  }
  return flow;
}

}  // namespace

std::string GradientGroup::layer_name() const {
  return layer == kAllLayers ? "all" : layer == kOutside ? "-" : fmt::format("{}", layer);
}

GradientGroup gradient_group(const Parameter& parameter) {
  const ParameterGroup group = group_of(parameter);
  const std::string& name = group.component == "attention" ? group.part : group.component;
  return {group.layer, rank_of(name), name};
}

GradientFlow measure_gradient_flow(const run::Config& config, const FlowRequest& request) {
  require_possible(config, request);
  request.say(fmt::format("training {} and {}, {} steps", baseline_kind(),
                          fmt::join(request.kinds, ", "), request.steps.back() + 1));
  GradientFlow flow{
      request.steps, request.seeds, measure_kind(config, request, baseline_kind()), {}};
  for (const std::string& kind : request.kinds) {
    flow.kinds.push_back(measure_kind(config, request, kind));
  }
  return flow;
}

SeedsBySteps gradient_ratios(const GradientFlow& flow, const KindFlow& kind,
                             const GradientGroup& group) {
  const auto above = kind.norms.find(group), below = flow.baseline.norms.find(group);
  if (above == kind.norms.end() || below == flow.baseline.norms.end()) return {};
  SeedsBySteps ratios;
  for (size_t i = 0; i < above->second.size(); ++i) {
    ratios.push_back(above->second[i] / below->second[i]);
  }
  return ratios;
}

}  // namespace difftape::app
