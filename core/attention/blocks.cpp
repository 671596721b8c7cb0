#include "core/attention/blocks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/pack.h"
#include "core/softcap.h"

namespace difftape::attention {

namespace {
/// Returns the most keys that one query can see.
Index reach_of(Index seq, Index window) { return window > 0 ? std::min(seq, window) : seq; }

/// Returns the most keys that a block of queries can read.
Index keys_of_block(const AttentionInputs& in, Index seq) {
  const BlockSparsity& blocks = in.blocks;
  const Index others = (blocks.separately ? 2 : 1) * (blocks.num_selected - 1);
  Index reach = reach_of(seq, in.visible.sliding_window);
  if (blocks.block_size > 0) reach = std::min(reach, (others + 1) * blocks.block_size);
  return std::min(seq, reach + kBlockRows + kStepRows);
}

/// Returns the queries of a block: they share one choice of keys.
Index rows_of_block(const BlockSparsity& blocks) {
  return blocks.block_size == 0 ? kBlockRows : std::gcd(blocks.block_size, kBlockRows);
}

void require_blocks(const BlockSparsity& blocks, Index maps) {
  if (blocks.block_size == 0) return;
  require_shape(blocks.block_size > 0 && blocks.block_size % 16 == 0, "attention",
                "the block size is {}; need 0 (dense) or a multiple of 16", blocks.block_size);
  require_shape(blocks.num_selected > 0, "attention",
                "{} blocks are to be read; need 1, the block of the query, or more",
                blocks.num_selected);
  require_shape(maps == 2 || !blocks.separately, "attention",
                "one map cannot choose blocks separately from another; need two maps");
}

void require_visibility(const AttentionInputs& in, const Shape& q) {
  const Index batch = q[0], seq = q[1];
  require_shape(in.visible.sliding_window >= 0, "attention",
                "the window is {}; need 0 (all) or more", in.visible.sliding_window);
  if (!in.visible.document_offsets) return;
  const std::vector<std::int32_t>& starts = *in.visible.document_offsets;
  require_shape(std::ssize(starts) == batch * seq, "attention",
                "{} document starts for ({}, {}) tokens; need one per token", starts.size(), batch,
                seq);
  for (Index i = 0; i < batch * seq; ++i) {
    const Index t = i % seq, start = starts[i], before = t == 0 ? 0 : starts[i - 1];
    require_shape(before <= start && start <= t, "attention",
                  "the document of token {} of sequence {} starts at {}; need {} to {}", t, i / seq,
                  start, before, t);
  }
}

}  // namespace

Dims dims_of(const AttentionInputs& in, const RoundedInputs& rounded) {
  const HeadMapping& mapping = in.mapping;
  mapping.require_valid();
  const auto shape_of = [](const Tensor& x, const RoundedHeads& r) -> const Shape& {
    return r.allocated() ? r.shape() : x.shape();
  };
  const Shape &q = shape_of(in.q, rounded.q), &k = shape_of(in.k, rounded.k),
              &v = shape_of(in.v, rounded.v);
  require_shape(q.rank() == 4 && k.rank() == 4 && v.rank() == 4, "attention",
                "q is {}, k is {}, v is {}; need (B, T, heads, head_dim) each", q.str(), k.str(),
                v.str());
  require_shape(q[0] == k[0] && q[0] == v[0] && q[1] == k[1] && q[1] == v[1], "attention",
                "q is {}, k is {}, v is {}; need equal batch and sequence", q.str(), k.str(),
                v.str());
  require_shape(q[2] == mapping.query_heads && k[2] == mapping.key_heads &&
                    v[2] == mapping.value_heads && q[3] == k[3],
                "attention", "q is {}, k is {}, v is {}; need {} query, {} key and {} value heads",
                q.str(), k.str(), v.str(), mapping.query_heads, mapping.key_heads,
                mapping.value_heads);
  const Index heads_out = mapping.heads_out();
  const Shape &lambda = in.lambda.shape(), &sinks = in.sinks.shape();
  require_shape(
      (mapping.maps == 2) == in.lambda.allocated(), "attention", "{}",
      mapping.maps == 2 ? "two maps have no lambda; need one" : "one map has a lambda; need none");
  require_shape(mapping.maps == 1 || lambda.size() == 1 || lambda == Shape{q[0], q[1], heads_out},
                "attention", "lambda is {}; need one scalar or ({}, {}, {})", lambda.str(), q[0],
                q[1], heads_out);
  require_shape(!in.sinks.allocated() || sinks == Shape{mapping.query_heads}, "attention",
                "sinks are {}; need ({}), one per query head", sinks.str(), mapping.query_heads);
  require_shape(in.scale != 0, "attention",
                "scale is not set; set it to attention_scale(head_dim)");
  require_visibility(in, q);
  require_blocks(in.blocks, mapping.maps);
  return {q[0],
          q[1],
          q[3],
          v[3],
          heads_out,
          mapping.maps,
          keys_of_block(in, q[1]),
          rows_of_block(in.blocks)};
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
  if (!in.lambda.allocated()) return 0;
  if (in.lambda.size() == 1) return in.lambda.data()[0];
  const Shape& s = in.lambda.shape();
  return in.lambda.data()[(b * s[1] + t) * s[2] + head];
}

real Sink::probability(const SoftmaxStats& stats) const {
  return present ? std::exp(logit - stats.max) * stats.inverse_sum : 0;
}

Sink sink_of(const AttentionInputs& in, Index query_head) {
  if (!in.sinks.allocated()) return {};
  return {true, in.sinks.data()[query_head]};
}

const SoftmaxStats& softmax_stats_at(const Tensor& stats, Index b, Index head, Index map, Index t) {
  const Shape& s = stats.shape();  // (B, output heads, M, T, 2)
  const real* at = stats.data() + (((b * s[1] + head) * s[2] + map) * s[3] + t) * 2;
  return *reinterpret_cast<const SoftmaxStats*>(at);
}

SoftmaxStats& softmax_stats_at(Tensor& stats, Index b, Index head, Index map, Index t) {
  return const_cast<SoftmaxStats&>(softmax_stats_at(std::as_const(stats), b, head, map, t));
}

Selections::Selections(AttentionInputs in, const RoundedInputs& rounded)
    : group_of_(groups_of_heads(in.mapping)), groups_(std::ssize(in.mapping.groups())) {
  if (in.blocks.block_size == 0) return;
  if (rounded.q.allocated()) {
    in.q = rounded.q.values();
    in.k = rounded.k.values();
  }
  all_.resize(in.q.shape()[0] * groups_);
  const auto groups = in.mapping.groups();
  parallel_for(std::ssize(all_), [&](Index task) {
    all_[task] = KeySelection(in, task / groups_, groups[task % groups_]);
  });
}

Block make_block(const AttentionInputs& in, const Dims& dims, const Selections& selections, Index b,
                 Index head, Index begin, Index rows) {
  // Later queries never see further back than the first one does.
  const Index visible = in.visible.first_visible(begin, b * dims.seq + begin);
  const Index first = visible / kStepRows * kStepRows, size = in.blocks.block_size;
  Block block{b, head, begin, std::min(rows, dims.seq - begin), dims.seq, {}};
  const auto add = [&](Index from, Index end, const std::array<bool, 2>& maps) {
    from = std::max(from, first);
    append_run(block.runs, {from, std::max<Index>(0, end - from), maps});
  };
  if (size > 0) {
    for (const KeyRun& run : selections.of(b, head).before(begin))
      add(run.first, run.end(), run.maps);
  }
  add(size > 0 ? begin / size * size : 0, begin, {true, true});
  return block;
}

PerQuery lambda_of(const AttentionInputs& in, const Block& block) {
  PerQuery lambda{};
  for_each_lanes(block, [&](const Lanes& lanes) {
    lambda[lanes.number()] = vector_of<real>([&](Index i) {
      const Index t = block.begin + lanes.first + i;
      return i < lanes.count ? lambda_at(in, block.b, t, block.head) : 0;
    });
  });
  return lambda;
}

void store_stats(const LaneStats& lane_stats, const Block& block, const Lanes& lanes, Index map,
                 Tensor& stats) {
  SoftmaxStats* to = &softmax_stats_at(stats, block.b, block.head, map, block.begin + lanes.first);
  for (Index i = 0; i < lanes.count; ++i) to[i] = {lane_stats.max[i], lane_stats.inverse_sum[i]};
}

void cap_and_mask(const AttentionInputs& in, const Block& block, const Tile& tile, Index map,
                  const Lanes& lanes, real* scores, real* slopes) {
  const Simd masked = -std::numeric_limits<real>::infinity();
  if (!tile.maps[map]) {
    for (Index at = 0; at < lanes.keys * kBlockRows; at += kBlockRows) {
      store(masked, scores + at);
      if (slopes) store(Simd{}, slopes + at);
    }
    return;
  }
  for (Index key = 0; in.logit_softcap > 0 && key < lanes.keys; ++key) {
    softcap(scores + key * kBlockRows, kSimdWidth, static_cast<real>(in.logit_softcap),
            slopes ? slopes + key * kBlockRows : nullptr);
  }
  const auto hide = [&](Index key, const SimdInts& hidden) {
    store(select(hidden, masked, load(scores + key * kBlockRows)), scores + key * kBlockRows);
  };
  const auto at = [](Index key) { return SimdInts(static_cast<SimdInt>(key)); };
  if (in.visible.sliding_window > 0 || in.visible.document_offsets) {
    const auto limit = vector_of<SimdInt>([&](Index i) {
      const Index t = block.begin + lanes.first + std::min(i, lanes.count - 1);
      const Index first = in.visible.first_visible(t, block.b * block.seq + t);
      return static_cast<SimdInt>(first - tile.position);
    });
    const Index end = std::min<Index>(lanes.keys, limit[lanes.count - 1]);
    for (Index key = 0; key < end; ++key) hide(key, at(key) < limit);
  }
  if (!tile.diagonal) return;
  const auto limit =
      vector_of<SimdInt>([&](Index i) { return static_cast<SimdInt>(lanes.offset(tile) + i); });
  for (Index key = lanes.offset(tile) + 1; key < lanes.keys; ++key) hide(key, at(key) > limit);
}

void finish_weights(const Tile& tile, const Lanes& lanes, real* weights) {
  for (Index key = lanes.keys; key < tile.keys; ++key) store(Simd{}, weights + key * kBlockRows);
}

void pack_panel(const Operand& rows, double scale, real* panel) {
  pack::panel(nullptr, transpose(rows), 0, panel);
  if (scale == 1) return;
  const auto factor = static_cast<real>(scale);
  for_each_vector(panel_size(rows.cols),
                  [&](Index i, Index) { store(load(panel + i) * factor, panel + i); });
}

void store_panel(const real* panel, Index width, const Block& block, real* to, Index to_stride) {
  pack::transpose(panel, kBlockRows, width, block.rows, to, to_stride);
}

}  // namespace difftape::attention
