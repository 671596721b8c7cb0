#pragma once
// Balancing of experts without a loss (Wang et al. 2024, "Auxiliary-Loss-Free Load Balancing
// Strategy for Mixture-of-Experts", algorithm 1; DeepSeek-AI 2024, DeepSeek-V3, section 2.1.2).

#include <vector>

#include "autograd/parameter.h"
#include "layers/observer.h"

namespace difftape {

/// Counts the tokens of each expert in the forward passes of a step. After the update, moves the
/// bias of each expert by `rate` towards the mean load: b += rate sign(mean - load). The counts are
/// integers, so neither threads nor processes change the result.
class LoadBalancer : public Observer {
 public:
  /// Passes everything that it observes on to `next`, if given.
  explicit LoadBalancer(double rate, Observer* next = nullptr) : rate_(rate), next_(next) {}

  void attention(Index layer, const AttentionView& view) override {
    if (next_) next_->attention(layer, view);
  }
  void hidden(Index layer, const Tensor& x) override {
    if (next_) next_->hidden(layer, x);
  }
  /// Keeps the loads of the layer until end_pass. Activation checkpointing shows a layer twice.
  void routing(Index layer, const RoutingView& view) override;
  /// Adds the loads of the pass to the loads of the step.
  void end_pass();

  void reset() { loads_.clear(); }
  /// Adds up the loads of all processes. Every process must call it.
  void join_processes();
  /// Returns the loads of the step, layer by layer, each (E).
  const std::vector<Index>& loads() const { return loads_; }
  /// Moves the biases among `parameters`, which are in the order of layers.
  void update(ParameterSet& parameters) const;

 private:
  double rate_;
  Observer* next_;
  std::vector<std::vector<Index>> pass_{};  ///< by layer
  std::vector<Index> loads_{};
};

}  // namespace difftape
