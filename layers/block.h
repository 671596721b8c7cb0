#pragma once
// One pre-norm transformer block: x + attention(norm(x)), then x + mlp(norm(x)).

#include "layers/attention/attention.h"
#include "layers/mlp.h"

namespace difftape {

class TransformerBlock {
 public:
  /// Declares the parameters below `model.layers.<layer>`.
  TransformerBlock(ParameterSet& parameters, const ModelConfig& config, Index layer,
                   std::shared_ptr<const RopeTable> rope);
  /// x (B, T, C) -> (B, T, C), with a call of the observer if there is one.
  Var operator()(const Var& x, const DocumentOffsets& document_offsets,
                 Observer* observer = nullptr) const;

  const Attention& attention() const { return attention_; }

 private:
  Index layer_;
  RmsNorm input_norm_;
  Attention attention_;
  RmsNorm post_attention_norm_;
  Mlp mlp_;
};

}  // namespace difftape
