#include "train/run/loop/spike_guard.h"

#include "optim/grad_norm.h"
#include "train/system/json.h"

namespace difftape::run {

namespace {

stats::SpikeRule rule_of(OnSpike on_spike) {
  return stats::make_spike_rule(on_spike == OnSpike::zclip ? stats::SpikeDefinition::zclip
                                                           : stats::SpikeDefinition::olmo_core);
}

}  // namespace

nlohmann::json state_of(const stats::SpikeDetector& detector) {
  nlohmann::json state = {
      {"history", detector.history()}, {"count", detector.count()}, {"spikes", detector.spikes()}};
  if (const auto& moving = detector.moving()) {
    state["mean"] = moving->mean;
    state["variance"] = moving->variance;
  }
  return state;
}

void restore_state(stats::SpikeDetector& detector, const nlohmann::json& state) {
  std::optional<stats::SpikeDetector::Moving> moving;
  if (state.contains("mean")) moving = {state.at("mean"), state.at("variance")};
  detector.restore(state.at("history").get<std::vector<double>>(),
                   system::whole_number(state.at("count")),
                   system::whole_number(state.at("spikes")), moving);
}

SpikeGuard::SpikeGuard(OnSpike on_spike)
    : on_spike_(on_spike), losses_(rule_of(on_spike)), norms_(rule_of(on_spike)) {}

double SpikeGuard::scale(double loss, double grad_norm) {
  if (!active()) return 1;
  const stats::SpikeVerdict norm = norms_.take(grad_norm);
  const bool loss_spikes = losses_.add(loss);
  if (on_spike_ == OnSpike::skip_step) return norm.spike || loss_spikes ? 0 : 1;
  return norm.spike ? clip_scale(grad_norm, norm.clipped) : 1;
}

nlohmann::json SpikeGuard::state() const {
  return {{"losses", state_of(losses_)}, {"norms", state_of(norms_)}};
}

void SpikeGuard::restore(const nlohmann::json& state) {
  restore_state(losses_, state.at("losses"));
  restore_state(norms_, state.at("norms"));
}

}  // namespace difftape::run
