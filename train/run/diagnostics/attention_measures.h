#pragma once
// Measurements of one attention layer from the AttentionView of an observer. "The map" of a head is
// its softmax map, or with two maps |A1 - lambda A2| with rows normalized to sum to 1. The weight
// of a sink belongs to no key.

#include <optional>
#include <span>
#include <vector>

#include "train/run/data/dataset.h"
#include "train/run/diagnostics/map_scan.h"
#include "train/run/records/metrics.h"

namespace difftape::run {

/// A head counts as a sink if the weight of the first token is above this, on average over the
/// first kSinkTokens queries of every sequence.
inline constexpr double kSinkThreshold = 0.3;

/// Attention of query tokens to the answer that they retrieve, and to the other tokens of the
/// context ("noise"): weights of the map summed over the tokens of each span, averaged over queries
/// and heads. The questions have the rest of the weight.
///
/// Source: Ye et al. 2024 (arXiv 2410.05258), "attention scores allocated to answer spans and noise
/// context" in key information retrieval. At 3B the answer gets 0.03 to 0.09 with softmax and 0.27
/// to 0.40 with V1, depending on its depth.
struct AnswerAttention {
  double answer, noise;  ///< NaN without queries
};

/// Measures the `queries` of the sequences of the view, ordered by row. Tokens that a query does
/// not see have weight 0. The result does not depend on the number of threads.
AnswerAttention answer_attention(const AttentionView& view,
                                 std::span<const RetrievalTarget> queries);

/// The measurements of one layer. The metric registry defines each number.
struct AttentionMeasures {
  Metrics metrics;  ///< by name without the layer, in the order of the log
  /// Maps of the first T <= kSinkTokens tokens of the first sequence, (output heads, S, T, T): S is
  /// 1, or 3 with two maps: A1, A2 and the map of the head.
  Tensor first_maps;
};

/// Returns the smallest cosine between the columns of W_O, (C, heads * E), of two output heads that
/// read the same values. Returns nothing if no heads do, or if the view has no W_O. Differential
/// attention, which subtracts head 2i+1 from head 2i, corresponds to -1 (Ye et al. 2026).
std::optional<double> smallest_output_cosine(const HeadMapping& mapping, const Tensor& weight);

/// Returns |c' - c| / |c|, where c is the context of a layer, and c' is computed with matmul
/// operands (q, k, v and maps) rounded to bfloat16. In f64 operands are rounded to f32 first.
double rounding_error(const AttentionView& view);

/// Measures a layer over heads, sequences and tokens. Logits are q k^T / sqrt(D) of visible
/// query-key pairs, pooled over both maps. The result does not depend on the number of threads.
AttentionMeasures measure_attention(const AttentionView& view);

}  // namespace difftape::run
