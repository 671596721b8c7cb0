#pragma once
// Whether tokens that have to retrieve something look at it or at the noise around it.

#include <span>

#include "layers/observer.h"
#include "train/run/data/dataset.h"

namespace difftape::run {

/// Shares of a row of the map of a head ("the map" as in attention_measures.h: the softmax map, or
/// with two maps |A1 - lambda A2| with rows that add up to 1; what a sink took belongs to nobody),
/// added up over the tokens of the span, mean over queries and heads. Tokens in neither span, those
/// of the questions, have the rest.
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

}  // namespace difftape::run
