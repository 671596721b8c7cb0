#pragma once
// The independent fields of an attention variant. A kind is a row of them in kinds.cpp; each can
// also be set separately.

#include "core/names.h"
#include "core/real.h"

namespace difftape {

/// The mapping from the baseline's heads to the heads of the layer (core/attention/heads.h).
enum class MappingKind {
  standard,  ///< one attention map per head
  paired,    ///< two maps, half the heads, values of twice the width (V1)
  doubled    ///< two maps, twice the query heads (V2)
};

enum class Pairing { interleaved, split_half };
constexpr auto names_of(Pairing) {
  return std::to_array<Named<Pairing>>(
      {{"interleaved", Pairing::interleaved}, {"split_half", Pairing::split_half}});
}

/// The weight of the second map; `one` is the plain difference of the maps.
enum class LambdaKind { exponential, sigmoid, raw, one };
constexpr auto names_of(LambdaKind) {
  return std::to_array<Named<LambdaKind>>({{"exponential", LambdaKind::exponential},
                                           {"sigmoid", LambdaKind::sigmoid},
                                           {"raw", LambdaKind::raw},
                                           {"none", LambdaKind::one}});
}

/// The constant in the exponential lambda: by layer, or fixed.
enum class LambdaInit { schedule, constant };
constexpr auto names_of(LambdaInit) {
  return std::to_array<Named<LambdaInit>>(
      {{"schedule", LambdaInit::schedule}, {"constant", LambdaInit::constant}});
}

/// The denominator of a softmax: its sum, plus exp(0), or plus exp of a learned sink per head.
enum class SoftmaxDenominator { softmax, softmax1, sink };
constexpr auto names_of(SoftmaxDenominator) {
  return std::to_array<Named<SoftmaxDenominator>>({{"softmax", SoftmaxDenominator::softmax},
                                                   {"softmax1", SoftmaxDenominator::softmax1},
                                                   {"sink", SoftmaxDenominator::sink}});
}

/// A gate sigmoid(x W^T) on each element of the context, or on each head.
enum class Gate { none, elementwise, head };
constexpr auto names_of(Gate) {
  return std::to_array<Named<Gate>>(
      {{"none", Gate::none}, {"elementwise", Gate::elementwise}, {"head", Gate::head}});
}

/// The maps that choose the blocks of keys of block-sparse attention: all maps of a group by their
/// summed scores, or first and second maps each for themselves.
enum class BlockSelection { averaged, separately };
constexpr auto names_of(BlockSelection) {
  return std::to_array<Named<BlockSelection>>(
      {{"averaged", BlockSelection::averaged}, {"separately", BlockSelection::separately}});
}

/// All properties of an attention layer, with defaults resolved. Two configurations make the same
/// layer if and only if these are equal.
struct AttentionFields {
  /// The kind with its own context rule (context.h); empty: the fused op.
  std::string_view context{};
  MappingKind mapping = MappingKind::standard;
  Index query_multiple = 1;  ///< query heads of the standard mapping per head of the baseline
  Pairing pairing = Pairing::interleaved;
  LambdaKind lambda = LambdaKind::one;
  LambdaInit lambda_init = LambdaInit::schedule;
  double lambda_init_value = 0;  ///< of a constant lambda_init in use, else 0
  SoftmaxDenominator softmax_denominator = SoftmaxDenominator::softmax;
  bool subln = false;  ///< RMSNorm of each head, with V1's lambda times 1 - lambda_init
  Gate gate = Gate::none;
  bool qk_norm = false;      ///< RMSNorm of every query and key head, before RoPE
  double logit_softcap = 0;  ///< c: scaled scores become c tanh(score / c); 0: no cap
  double qk_clip = 0;        ///< largest logit before weights are scaled (qk_clip.h); 0: none
  Index sliding_window = 0;  ///< keys that a query sees, itself included; 0: all
  /// Block-sparse attention (core/attention/selection.h): tokens per block, 0: dense; blocks that a
  /// query reads.
  Index block_size = 0, num_selected_blocks = 0;
  BlockSelection block_selection = BlockSelection::averaged;

  Index maps() const { return mapping == MappingKind::standard ? 1 : 2; }
  bool operator==(const AttentionFields&) const = default;
};

}  // namespace difftape
