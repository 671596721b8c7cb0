#pragma once
// What is measured of one attention layer, from what an observer sees of it. "The map" of a head is
// its softmax map, or with two maps |A1 - lambda A2| with rows that add up to 1; what a sink took
// belongs to no key.

#include <optional>
#include <span>
#include <vector>

#include "train/run/data/dataset.h"
#include "train/run/diagnostics/map_scan.h"
#include "train/run/records/metrics.h"

namespace difftape::run {

/// A head is a sink if its queries give the first token of the input more than this, on average
/// over the kSinkTokens queries and the inputs.
inline constexpr double kSinkThreshold = 0.3;

/// Whether tokens that have to retrieve something attend to it or to the noise around it: shares of
/// a row of the map of a head, added up over the tokens of the span, mean over queries and heads.
/// Tokens in neither span, those of the questions, have the rest.
///
/// The measure of Ye et al. 2024 (arXiv 2410.05258), "attention scores allocated to answer spans
/// and noise context" in key information retrieval: at 3B, by depth of the answer, .03 to .09 on
/// the answer for softmax and .27 to .40 for V1.
struct AnswerAttention {
  double answer, noise;  ///< NaN without queries
};

/// `queries` are those of the view's sequences, by row. A token that a query does not see gets
/// nothing. The same for every number of threads.
AnswerAttention answer_attention(const AttentionView& view,
                                 std::span<const RetrievalTarget> queries);

/// What was measured of one layer. The registry of metrics says what each number is.
struct AttentionMeasures {
  Metrics metrics;  ///< by name, without the layer, in the order in which they are logged
  /// Of each output head and token, (output heads, B T); only with two maps.
  std::vector<double> lambdas;
  /// (output heads, S, T, T), the maps of the first sequence's first kSinkTokens tokens: S = 1, or
  /// 3 with two maps: A1, A2 and the map of the head.
  Tensor first_maps;
};

/// The smallest cosine between the parts of W_O, (C, heads * E), of two output heads that read the
/// same values; nothing if no two do, or the view has no W_O. Differential attention is the cosine
/// -1: head 2i+1 is subtracted from head 2i (Ye et al. 2026).
std::optional<double> smallest_output_cosine(const HeadMapping& mapping, const Tensor& weight);

/// |c' - c| / |c| of the context c of a layer, and of c' from q, k, v and maps that are rounded to
/// bfloat16 where they enter a product. In f64 the rounding is that of f32.
double rounding_error(const AttentionView& view);

/// Measures a layer over heads, sequences and tokens. Logits are q k^T / sqrt(D) of the pairs a
/// query sees, those of both maps pooled. The same for every number of threads.
AttentionMeasures measure_attention(const AttentionView& view);

}  // namespace difftape::run
