#pragma once
#include "layers/attention/attention.h"
#include "layers/mlp.h"
#include "layers/moe.h"
#include "layers/rms_norm.h"

namespace difftape {

/// One pre-norm transformer block: x + attention(norm(x)), then x + mlp(norm(x)), where the MLP may
/// be a mixture of experts.
class TransformerBlock {
 public:
  /// Declares the parameters below `model.layers.<layer>`.
  TransformerBlock(ParameterSet& parameters, const ModelConfig& config, Index layer,
                   std::shared_ptr<const RopeTable> rope);
  /// Maps x (B, T, C) to (B, T, C) and calls the observer, if any. Stores the loss of the router in
  /// `router_loss` if it has one.
  Var operator()(const Var& x, const Pass& pass = {}, Var* router_loss = nullptr) const;

 private:
  Index layer_;
  RmsNorm input_norm_;
  Attention attention_;
  RmsNorm post_attention_norm_;
  std::optional<Mlp> mlp_;
  std::optional<Moe> moe_;  ///< in place of mlp_
};

}  // namespace difftape
