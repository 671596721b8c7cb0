#pragma once
// QK-clip (Kimi Team 2025, "Kimi K2", section 2.1, MuonClip): limits attention logits by scaling
// the weights of queries and keys.

#include <span>
#include <vector>

#include "autograd/parameter.h"
#include "layers/observer.h"

namespace difftape {

struct QkClipped {
  double largest = 0;  ///< largest q k / sqrt(d) of visible pairs, over all heads and layers
  Index heads = 0;     ///< query heads with scaled weights
};

/// Observes the forward passes of a step. After its update, scales the weights of heads whose
/// largest logit S exceeded the threshold tau, so that the same inputs would give tau: W_q and W_k
/// by sqrt(tau / S), or W_q alone by tau / S if query heads or layers share the key head (as in the
/// paper).
/// Exact and independent of threads: it uses the row maxima of the softmax.
class QkClip : public Observer {
 public:
  explicit QkClip(double threshold) : threshold_(threshold) {}

  /// Keeps the largest logit of each query head. Needs view.softmax_stats.
  void attention(Index layer, const AttentionView& view) override;
  void hidden(Index /*layer*/, const Tensor& /*x*/) override {}

  void reset() { layers_.clear(); }
  /// Returns the largest logit seen.
  QkClipped seen() const;
  /// Scales the weights of q_proj and k_proj.
  QkClipped clip(ParameterSet& parameters) const;

  /// The observations of one layer.
  struct Layer {
    HeadMapping mapping{};
    std::vector<real> largest{};  ///< logit per query head

    /// Merges observations of other passes, concatenated lists of all query heads.
    void join(std::span<const real> others);
  };
  std::span<Layer> layers() { return layers_; }

 private:
  double threshold_;
  std::vector<Layer> layers_;
};

}  // namespace difftape
