#pragma once
// What the forward and the backward attention kernels share: sizes, head views, one block of maps.

#include "core/attention/attention.h"
#include "core/attention/rows.h"
#include "core/parallel.h"

namespace difftape::attention {

/// Sizes of one call.
struct Dims {
  Index batch, seq, head_dim, value_dim, heads_out, maps;
  Index block;   ///< query rows that are worked on together; depends on the sizes alone
  Index stride;  ///< row stride of the score buffers: the keys that a block can reach
  Index blocks() const { return ceil_div(seq, block); }
};
Dims dims_of(const HeadMapping& mapping, const AttentionInputs& in);
/// Query rows of a block for a window (0: none).
Index block_rows(Index seq, Index window);

/// Rows of one head of one sequence in a (B, T, heads, width) tensor.
struct Head {
  const real* data;
  Index stride;  ///< between tokens
  const real* row(Index t) const { return data + t * stride; }
  Operand rows(Index begin, Index count, Index width) const {
    return {row(begin), count, width, stride, false};
  }
};
Head head_of(const Tensor& x, Index b, Index head);
/// The same place in a tensor that is written.
real* head_data(Tensor& x, Index b, Index head, Index t);

/// lambda of one token and output head, 0 if there is none.
real lambda_at(const AttentionInputs& in, Index b, Index t, Index head);
/// The extra logit of a query head.
Sink sink_of(const AttentionInputs& in, Index query_head);

/// The row statistics of one token in one map.
SoftmaxStats& softmax_stats_at(Tensor& stats, Index b, Index head, Index map, Index t);
const SoftmaxStats& softmax_stats_at(const Tensor& stats, Index b, Index head, Index map, Index t);

/// Queries [begin, begin + rows) of one output head and all keys that any of them sees. Their
/// scores lie in buffers of `rows` rows, column 0 being first_key.
struct Block {
  Index b, head, begin, rows;
  Index first_key;  ///< a multiple of kPanel
  /// Columns that some of the rows before `end` see.
  Index keys_before(Index end) const { return begin + end - first_key; }
  /// Columns of row i that can hold visible keys: up to the query itself, rounded up to whole
  /// vectors.
  Index width(Index i) const { return round_up_to_width(begin + i + 1 - first_key); }
};
/// Rows of a block whose products are cut at the last key that one of them sees.
inline constexpr Index kStepRows = 32;
/// Calls f(first, count) for each step of a block.
template <class F>
void for_each_step(const Block& block, F&& f) {
  for (Index i = 0; i < block.rows; i += kStepRows) {
    f(i, block.rows - i < kStepRows ? block.rows - i : kStepRows);
  }
}
/// The columns of row i that lie beyond it and that a product with its step reads := 0.
void zero_tail(const Block& block, Index i, real* row);

Block make_block(const AttentionInputs& in, const Dims& dims, Index b, Index head, Index begin);

/// Puts -inf on the columns of row i of a block, up to its width, that its query does not see.
void mask(const AttentionInputs& in, const Block& block, Index i, real* scores);

/// Transposed heads as panels: element (d, t) of each head of each sequence times `scale`, ready to
/// be the right operand of q k^T. It is packed once for every query block and every
/// query head of the group.
class TransposedHeads {
 public:
  TransposedHeads(const Tensor& x, Index heads, Index width, double scale);
  const real* panels(Index b, Index head) const;

 private:
  Index heads_, size_;
  Tensor packed_;
};

/// out (rows x keys of the block, row stride `stride`) = rows times the packed columns of its keys,
/// step by step as far as the step sees, rounded up to whole vectors.
void multiply_panels(const Operand& rows, const real* panels, const Block& block, real* out,
                     Index stride);

/// to (rows of the block x n) = or += weights (rows x keys, row stride `stride`) times rows of a
/// head, the first being that of first_key.
void multiply_rows(const real* weights, Index stride, const Block& block, const Head& head, Index n,
                   real* to, Index to_stride, Accumulate accumulate);

}  // namespace difftape::attention
