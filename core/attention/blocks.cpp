#include "core/attention/blocks.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.h"
#include "core/rows.h"

namespace difftape::attention {

namespace {
constexpr Index kBlockRows = 64;      // short rows: both maps and dA of a block fit the L2 cache
constexpr Index kLongBlockRows = 32;  // long rows
constexpr Index kLongReach = 768;     // keys

/// Keys that one query can see, whatever its position.
Index reach_of(Index seq, Index window) { return window > 0 ? std::min(seq, window) : seq; }

/// Row stride of score buffers.
Index score_stride(Index seq, Index window) {
  const Index span = std::min(seq, reach_of(seq, window) + block_rows(seq, window) + kPanel);
  return round_up(span, kPanel);
}

/// The first token that token t of sequence b sees.
Index first_visible(const AttentionInputs& in, Index b, Index t) {
  const Visibility& visible = in.visible;
  Index first = visible.sliding_window > 0 ? std::max(Index{0}, t + 1 - visible.sliding_window) : 0;
  if (visible.document_offsets) {
    const auto at = static_cast<size_t>(b * in.q.shape()[1] + t);
    first = std::max(first, static_cast<Index>((*visible.document_offsets)[at]));
  }
  return first;
}

void require_visibility(const AttentionInputs& in) {
  const Index batch = in.q.shape()[0], seq = in.q.shape()[1];
  require_shape(in.visible.sliding_window >= 0, "attention",
                "the window is {}; need 0 (all) or more", in.visible.sliding_window);
  if (!in.visible.document_offsets) return;
  const std::vector<std::int32_t>& starts = *in.visible.document_offsets;
  require_shape(static_cast<Index>(starts.size()) == batch * seq, "attention",
                "{} document starts for ({}, {}) tokens; need one a token", starts.size(), batch,
                seq);
  for (Index i = 0; i < batch * seq; ++i) {
    const Index start = starts[static_cast<size_t>(i)], t = i % seq;
    const Index before = t == 0 ? 0 : starts[static_cast<size_t>(i - 1)];
    require_shape(before <= start && start <= t, "attention",
                  "the document of token {} of sequence {} starts at {}; need {} to {}", t, i / seq,
                  start, before, t);
  }
}

}  // namespace

Dims dims_of(const HeadMapping& mapping, const AttentionInputs& in) {
  const Shape &q = in.q.shape(), &k = in.k.shape(), &v = in.v.shape();
  require_shape(q.rank() == 4 && k.rank() == 4 && v.rank() == 4, "attention",
                "q is {}, k is {}, v is {}; need (B, T, heads, head_dim) each", q.str(), k.str(),
                v.str());
  require_shape(q[0] == k[0] && q[0] == v[0] && q[1] == k[1] && q[1] == v[1], "attention",
                "batch or sequence differ: q is {}, k is {}, v is {}", q.str(), k.str(), v.str());
  require_shape(q[2] == mapping.query_heads && k[2] == mapping.key_heads &&
                    v[2] == mapping.value_heads && q[3] == k[3],
                "attention", "q is {}, k is {}, v is {}; need {} query, {} key and {} value heads",
                q.str(), k.str(), v.str(), mapping.query_heads, mapping.key_heads,
                mapping.value_heads);
  const auto heads_out = static_cast<Index>(mapping.outputs.size());
  require_shape((mapping.maps == 2) == (in.lambda != nullptr), "attention",
                "two maps need lambda, one map has none");
  require_shape(
      !in.lambda || in.lambda->size() == 1 || in.lambda->shape() == Shape{q[0], q[1], heads_out},
      "attention", "lambda is {}; need one scalar or ({}, {}, {})",
      in.lambda ? in.lambda->shape().str() : "", q[0], q[1], heads_out);
  require_shape(!in.sinks || in.sinks->shape() == Shape{mapping.query_heads}, "attention",
                "sinks are {}; need ({}), one a query head",
                in.sinks ? in.sinks->shape().str() : "", mapping.query_heads);
  require_visibility(in);
  const Index window = in.visible.sliding_window;
  return {q[0],
          q[1],
          q[3],
          v[3],
          heads_out,
          mapping.maps,
          block_rows(q[1], window),
          score_stride(q[1], window)};
}

Index block_rows(Index seq, Index window) {
  return reach_of(seq, window) >= kLongReach ? kLongBlockRows : kBlockRows;
}

Head head_of(const Tensor& x, Index b, Index head) {
  const Shape& s = x.shape();
  return {x.data() + (b * s[1] * s[2] + head) * s[3], s[2] * s[3]};
}

real* head_data(Tensor& x, Index b, Index head, Index t) {
  const Shape& s = x.shape();
  return x.data() + ((b * s[1] + t) * s[2] + head) * s[3];
}

real lambda_at(const AttentionInputs& in, Index b, Index t, Index head) {
  if (!in.lambda) return 0;
  if (in.lambda->size() == 1) return in.lambda->data()[0];
  const Shape& s = in.lambda->shape();
  return in.lambda->data()[(b * s[1] + t) * s[2] + head];
}

Sink sink_of(const AttentionInputs& in, Index query_head) {
  if (!in.sinks) return {};
  return {true, in.sinks->data()[query_head]};
}

const SoftmaxStats& softmax_stats_at(const Tensor& stats, Index b, Index head, Index map, Index t) {
  const Shape& s = stats.shape();  // (B, output heads, M, T, 2)
  const real* at = stats.data() + (((b * s[1] + head) * s[2] + map) * s[3] + t) * 2;
  return *reinterpret_cast<const SoftmaxStats*>(at);
}

SoftmaxStats& softmax_stats_at(Tensor& stats, Index b, Index head, Index map, Index t) {
  return const_cast<SoftmaxStats&>(softmax_stats_at(std::as_const(stats), b, head, map, t));
}

Block make_block(const AttentionInputs& in, const Dims& dims, Index b, Index head, Index begin) {
  // Later queries never see further back than the first one does.
  const Index first_key = first_visible(in, b, begin) / kPanel * kPanel;
  return {b, head, begin, std::min(dims.block, dims.seq - begin), first_key};
}

void mask(const AttentionInputs& in, const Block& block, Index i, real* scores) {
  constexpr real kMasked = -std::numeric_limits<real>::infinity();
  const Index t = block.begin + i;
  std::fill(scores, scores + (first_visible(in, block.b, t) - block.first_key), kMasked);
  std::fill(scores + (t + 1 - block.first_key), scores + block.width(i), kMasked);
}

TransposedHeads::TransposedHeads(const Tensor& x, Index heads, Index width, double scale)
    : heads_(heads), size_(packed_size(width, x.shape()[1])) {
  const Index batch = x.shape()[0], seq = x.shape()[1];
  packed_ = Tensor::empty({batch * heads, size_});
  parallel_for(batch * heads, [&](Index i) {
    const Head head = head_of(x, i / heads_, i % heads_);
    pack_panels(transpose(head.rows(0, seq, width)), packed_.data() + i * size_);
    if (scale != 1) Row(packed_.data() + i * size_, size_) *= static_cast<real>(scale);
  });
}

const real* TransposedHeads::panels(Index b, Index head) const {
  return packed_.data() + (b * heads_ + head) * size_;
}

void zero_tail(const Block& block, Index i, real* row) {
  const Index step_end = std::min((i / kStepRows + 1) * kStepRows, block.rows);
  const Index keys = block.keys_before(step_end);
  std::fill(row + std::min(block.width(i), keys), row + keys, real{0});
}

void multiply_panels(const Operand& rows, const real* panels, const Block& block, real* out,
                     Index stride) {
  const real* first = panels + block.first_key * rows.cols;
  for_each_step(block, [&](Index i, Index count) {
    const Operand step{rows.data + i * rows.stride, count, rows.cols, rows.stride};
    const Index keys = round_up_to_width(block.keys_before(i + count));
    for (Index j = 0; j < keys; j += kPanel) {
      tile_gemm(step, first + j * rows.cols, kPanel, std::min(kPanel, keys - j),
                out + i * stride + j, stride, Accumulate::no);
    }
  });
}

void multiply_rows(const real* weights, Index stride, const Block& block, const Head& head, Index n,
                   real* to, Index to_stride, Accumulate accumulate) {
  for_each_step(block, [&](Index i, Index count) {
    tile_gemm({weights + i * stride, count, block.keys_before(i + count), stride},
              head.row(block.first_key), head.stride, n, to + i * to_stride, to_stride, accumulate);
  });
}

}  // namespace difftape::attention
