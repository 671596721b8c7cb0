#pragma once
// What the forward and the backward attention kernels share: sizes, head views, one block of maps.

#include "core/attention/attention.h"
#include "core/rows.h"

namespace difftape::attention {

/// Sizes of one call.
struct Dims {
  Index batch, seq, head_dim, value_dim, heads_out, maps;
  Index block;   ///< query rows that are worked on together; depends on seq alone
  Index stride;  ///< row stride of the score buffers: seq rounded up to whole panels
};
Dims dims_of(const HeadLayout& layout, const AttentionInputs& in);

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
real lambda_at(const AttentionInputs& in, const Dims& dims, Index b, Index t, Index head);

/// The two row statistics of one token in one map.
struct RowStats {
  real max, inverse_sum;
};
RowStats& row_stats_at(Tensor& stats, Index b, Index head, Index map, Index t);
const RowStats& row_stats_at(const Tensor& stats, Index b, Index head, Index map, Index t);

/// Transposed heads as panels: element (d, t) of each head of each sequence, ready to be the right
/// operand of q k^T. One pack serves every query block and every query head of the group.
class TransposedHeads {
 public:
  TransposedHeads(const Tensor& x, Index heads, Index width);
  const real* panels(Index b, Index head) const;

 private:
  Index heads_, size_;
  Tensor packed_;
};

/// out (m x columns, row stride dims.stride) = rows (m x width) times the first `columns` packed
/// columns, rounded up to whole panels.
void multiply_panels(const Operand& rows, const real* panels, Index columns, real* out,
                     Index stride);

}  // namespace difftape::attention
