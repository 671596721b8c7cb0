#pragma once
// Keys and values of one attention layer, or of a cross-decoder, whose layers share them.
//
// YOCO (Sun et al. 2024, "You Only Cache Once", equations 2 to 4): the first layers, with a sliding
// window, are a self-decoder. Its output is normalized and projected once to keys and values. The
// other layers, the cross-decoder, read these in causal attention of any kind.

#include <memory>
#include <optional>

#include "layers/attention/context.h"
#include "layers/linear.h"
#include "layers/model_config.h"
#include "layers/pass.h"
#include "layers/rms_norm.h"

namespace difftape {

/// The heads of every attention layer of a model.
struct HeadSizes {
  HeadMapping mapping;
  Index head_dim;   ///< D
  Index value_dim;  ///< E, width of one value head
};
HeadSizes head_sizes(const ModelConfig& config);

/// Projects hidden states to heads.
class HeadProjection {
 public:
  /// Declares `<suffix>.weight`. A null `rope` means no rotation.
  HeadProjection(const AttentionArgs& args, const char* suffix, Index heads, Index width,
                 std::shared_ptr<const RopeTable> rope);
  /// Declares the RMSNorm of each head before the rotation.
  void add_norm(const AttentionArgs& args, const char* suffix);
  /// Maps x (B, T, C), whose first token has the given position, to (B, T, heads, width).
  Var operator()(const Var& x, Index position = 0) const;

 private:
  Linear linear_;
  Index heads_, width_;
  std::optional<RmsNorm> norm_;
  std::shared_ptr<const RopeTable> rope_;
};

/// Projects hidden states to keys and values.
struct KeyValueProjection {
  /// Declares the `weight` of k_proj and v_proj; the owner adds the norm of keys.
  KeyValueProjection(const AttentionArgs& args, const HeadSizes& sizes,
                     std::shared_ptr<const RopeTable> rope);

  /// Maps x (B, T, C) to keys and values, and appends them to the cache, if any.
  KeyValues operator()(const Var& x, KvCache* cache) const;

  HeadProjection k, v;
};

/// Makes the keys and values of a cross-decoder.
class SharedKeyValues {
 public:
  /// Declares `norm.weight`, `k_proj.weight`, `v_proj.weight` and, with qk_norm, `k_norm.weight`
  /// below `model.shared_kv`.
  SharedKeyValues(ParameterSet& parameters, const ModelConfig& config,
                  std::shared_ptr<const RopeTable> rope);
  /// Normalizes the output (B, T, C) of the self-decoder and maps it like KeyValueProjection.
  KeyValues operator()(const Var& x, KvCache* cache) const;

 private:
  RmsNorm norm_;
  KeyValueProjection projection_;
};

}  // namespace difftape
