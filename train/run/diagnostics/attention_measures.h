#pragma once
// What is measured of one attention layer, from what an observer sees of it. "The map" of a head is
// its softmax map, or with two maps |A1 - lambda A2| with rows that add up to 1; what a sink took
// belongs to no key.

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "train/run/data/dataset.h"
#include "train/run/diagnostics/map_scan.h"

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

/// Of one output head, over all sequences and tokens.
struct HeadMeasures {
  double context_rms = 0;  ///< mean of RMS(c) = sqrt(|c|^2 / width)
  double first_token = 0;  ///< mean share of the map on token 1, on kSinkTokens tokens
  double entropy = 0;      ///< mean entropy of a row of the map in nats
  double logit_max = 0;    ///< largest |logit| of the maps
  double lambda = 0;       ///< mean
  std::array<double, 2> map_first_token{}, map_logit_max{};  ///< of each softmax map
};

/// Of one layer, over heads, sequences and tokens. Logits are q k^T / sqrt(D) of the pairs a query
/// sees, those of both maps pooled.
struct AttentionMeasures {
  Index maps = 1;
  Spread context_rms{};
  /// Share of tokens and heads whose RMS is not in the interval that holds for uncorrelated values
  /// of RMS 1 (Ye et al. 2026): [1/sqrt(n), 1) for the softmax of a query that sees n keys; (0, 1)
  /// with a sink, softmax1 or a gate; (0, sqrt 2) for two maps. The last is V2's, and V1's too:
  /// it is (0, sqrt(1 + lambda^2)) with lambda 1, which V1 seldom passes; a lambda above it, which
  /// only V1 and the raw rule allow, is what the share is to show. Queries that see one key are
  /// left out: their interval is empty.
  double context_outside = 0;
  double sink_rate = 0;    ///< share of heads that are sinks
  double first_token = 0;  ///< mean over heads
  double entropy = 0;      ///< mean over heads
  double sparsity = 0;     ///< share of pairs of query and key below kSparseWeight in the map
  std::array<double, 2> map_sink_rate{};
  TopValues logits{};
  /// Of each output head and token, (output heads, B T); only with two maps.
  std::vector<double> lambdas;
  Spread lambda{};  ///< of these
  /// Pearson's correlation of lambda and context RMS over the tokens of a head, mean over heads;
  /// nothing if lambda is one number.
  std::optional<double> lambda_rms_correlation;
  std::optional<double> output_cosine;  ///< smallest_output_cosine
  AnswerAttention to_answer{};          ///< NaN without queries
  std::vector<HeadMeasures> heads;
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

/// `queries` are those of the view's sequences, by row, of data that knows them. The same for every
/// number of threads.
AttentionMeasures measure_attention(const AttentionView& view,
                                    std::span<const RetrievalTarget> queries = {});

}  // namespace difftape::run
