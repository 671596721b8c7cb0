#pragma once
// QK-clip (Kimi Team 2025, "Kimi K2", section 2.1, MuonClip): keeps attention logits below a
// threshold by scaling the weights that make them.

#include <span>
#include <vector>

#include "autograd/parameter.h"
#include "layers/observer.h"

namespace difftape {

/// The outcome of one clipping.
struct QkClipped {
  double largest = 0;  ///< logit of all heads of all layers, q k / sqrt(d) of visible pairs
  Index heads = 0;     ///< query heads whose weights were scaled
};

/// Watches the forward passes of a step; after its update, scales the weights of the heads whose
/// largest logit S was above the threshold tau, so that the same inputs would give tau: W_q and W_k
/// by sqrt(tau / S), or, where several query heads read one key head, W_q alone by tau / S (as the
/// paper treats what heads share). Exact and independent of the number of threads: the maxima are
/// those that the softmax of each row has found anyway.
class QkClip : public Observer {
 public:
  explicit QkClip(double threshold) : threshold_(threshold) {}

  /// Keeps the largest logit of each query head. Needs view.softmax_stats.
  void attention(Index layer, const AttentionView& view) override;
  void hidden(Index /*layer*/, const Tensor& /*x*/) override {}

  /// Forgets what it saw.
  void reset() { layers_.clear(); }
  /// The largest logit seen.
  QkClipped seen() const;
  /// Scales the weights of the parts q_proj and k_proj.
  QkClipped clip(ParameterSet& parameters) const;

  /// One layer as the passes so far showed it.
  struct Layer {
    HeadMapping mapping{};
    std::vector<real> largest{};  ///< logit of each query head

    /// Joins what other passes found, lists of all query heads one behind the other.
    void join(std::span<const real> others);
  };
  std::span<Layer> layers() { return layers_; }

 private:
  double threshold_;
  std::vector<Layer> layers_;
};

}  // namespace difftape
