#include "core/attention/blocks.h"

#include <utility>

#include "core/error.h"

namespace difftape::attention {

namespace {
constexpr Index kBlockRows = 64;      // short rows: both maps and dP of a block fit the L2 cache
constexpr Index kLongBlockRows = 32;  // long rows
constexpr Index kLongSeq = 768;
}  // namespace

Dims dims_of(const HeadLayout& layout, const AttentionInputs& in) {
  const Shape &q = in.q.shape(), &k = in.k.shape(), &v = in.v.shape();
  require_shape(q.rank() == 4 && k.rank() == 4 && v.rank() == 4, "attention",
                "q is {}, k is {}, v is {}; need (B, T, heads, head_dim) each", q.str(), k.str(),
                v.str());
  require_shape(q[0] == k[0] && q[0] == v[0] && q[1] == k[1] && q[1] == v[1], "attention",
                "batch or sequence differ: q is {}, k is {}, v is {}", q.str(), k.str(), v.str());
  require_shape(q[2] == layout.query_heads && k[2] == layout.key_heads &&
                    v[2] == layout.value_heads && q[3] == k[3],
                "attention", "q is {}, k is {}, v is {}; need {} query, {} key and {} value heads",
                q.str(), k.str(), v.str(), layout.query_heads, layout.key_heads,
                layout.value_heads);
  const auto heads_out = static_cast<Index>(layout.routes.size());
  require_shape((layout.maps == 2) == (in.lambda != nullptr), "attention",
                "two maps need lambda, one map has none");
  require_shape(
      !in.lambda || in.lambda->size() == 1 || in.lambda->shape() == Shape{q[0], q[1], heads_out},
      "attention", "lambda is {}; need one scalar or ({}, {}, {})",
      in.lambda ? in.lambda->shape().str() : "", q[0], q[1], heads_out);
  return {q[0],
          q[1],
          q[3],
          v[3],
          heads_out,
          layout.maps,
          q[1] >= kLongSeq ? kLongBlockRows : kBlockRows,
          (q[1] + kPanel - 1) / kPanel * kPanel};
}

Head head_of(const Tensor& x, Index b, Index head) {
  const Shape& s = x.shape();
  return {x.data() + (b * s[1] * s[2] + head) * s[3], s[2] * s[3]};
}

real* head_data(Tensor& x, Index b, Index head, Index t) {
  const Shape& s = x.shape();
  return x.data() + ((b * s[1] + t) * s[2] + head) * s[3];
}

real lambda_at(const AttentionInputs& in, const Dims& dims, Index b, Index t, Index head) {
  if (!in.lambda) return 0;
  if (in.lambda->size() == 1) return in.lambda->data()[0];
  return in.lambda->data()[(b * dims.seq + t) * dims.heads_out + head];
}

const RowStats& row_stats_at(const Tensor& stats, Index b, Index head, Index map, Index t) {
  const Shape& s = stats.shape();  // (B, output heads, M, T, 2)
  const real* at = stats.data() + (((b * s[1] + head) * s[2] + map) * s[3] + t) * 2;
  return *reinterpret_cast<const RowStats*>(at);
}

RowStats& row_stats_at(Tensor& stats, Index b, Index head, Index map, Index t) {
  return const_cast<RowStats&>(row_stats_at(std::as_const(stats), b, head, map, t));
}

TransposedHeads::TransposedHeads(const Tensor& x, Index heads, Index width)
    : heads_(heads), size_(packed_size(width, x.shape()[1])) {
  const Index batch = x.shape()[0], seq = x.shape()[1];
  packed_ = Tensor::empty({batch * heads, size_});
  parallel_for(batch * heads, [&](Index i) {
    const Head head = head_of(x, i / heads_, i % heads_);
    pack_panels(transpose(head.rows(0, seq, width)), packed_.data() + i * size_);
  });
}

const real* TransposedHeads::panels(Index b, Index head) const {
  return packed_.data() + (b * heads_ + head) * size_;
}

void multiply_panels(const Operand& rows, const real* panels, Index columns, real* out,
                     Index stride) {
  for (Index j = 0; j < columns; j += kPanel) {
    tile_gemm(rows, panels + j * rows.cols, kPanel, kPanel, out + j, stride, Into::overwrite);
  }
}

}  // namespace difftape::attention
