// Backward needs one dA and one product with W^T for both maps. One task owns a sequence and a
// group of heads that share keys or values, so their gradients are added in one order. If there are
// fewer than 16 such tasks, each is cut into parts with their own gradients, which are added in
// order. Products stop, 32 rows at a time, at the last visible key.
#include <algorithm>

#include "core/attention/products.h"
#include "core/error.h"
#include "core/rows.h"

namespace difftape {

namespace {

using namespace attention;

/// True for each output head and map that is the first to touch its key or value head.
using Firsts = std::vector<std::array<bool, 2>>;

/// Accumulators for the gradients of keys and values, owned by the caller or a part. The diagonal
/// blocks of the first head to touch a key overwrite it; everything else is added later.
struct KeyGradients {
  Tensor dk, dv;
  Firsts first_key, first_value;
};

/// Marks the first use of each of the `heads`, in the order of the groups. If some head is never
/// used, marks no first use and zeroes a gradient that is to be overwritten.
Firsts first_uses(const HeadMapping& mapping, std::array<Index, 2> OutputHead::*heads,
                  Tensor& gradient, Accumulate accumulate) {
  Firsts first(mapping.outputs.size());
  if (accumulate == Accumulate::yes) return first;
  std::vector<bool> seen(gradient.shape()[2]);
  for (const std::vector<Index>& group : mapping.groups()) {
    for (Index head : group) {
      for (Index map = 0; map < mapping.maps; ++map) {
        const Index at = (mapping.outputs[head].*heads)[map];
        first[head][map] = !seen[at];
        seen[at] = true;
      }
    }
  }
  if (std::ranges::count(seen, false) == 0) return first;
  gradient.fill(0);
  return Firsts(mapping.outputs.size());
}

/// The caller's gradients, overwritten or added to as requested.
KeyGradients own_key_gradients(const HeadMapping& mapping, AttentionGradients& to) {
  return {to.dk, to.dv, first_uses(mapping, &OutputHead::key, to.dk, to.accumulate_k),
          first_uses(mapping, &OutputHead::value, to.dv, to.accumulate_v)};
}

/// Zeros in the shapes of the caller's gradients.
KeyGradients part_of_key_gradients(const HeadMapping& mapping, const AttentionGradients& to) {
  const Firsts none(mapping.outputs.size());
  return {Tensor::zeros(to.dk.shape()), Tensor::zeros(to.dv.shape()), none, none};
}

/// Sums the parts in order into the caller's gradients.
void add_parts(const std::vector<KeyGradients>& parts, AttentionGradients& gradients) {
  const auto add = [&](Tensor KeyGradients::*which, Tensor& to, Accumulate accumulate) {
    parallel_ranges(to.size(), kElementGrain, [&](Index i, Index n) {
      Row row(to.data() + i, n);
      if (accumulate == Accumulate::no) row.setZero();
      for (const KeyGradients& part : parts) row += ConstRow((part.*which).data() + i, n);
    });
  };
  add(&KeyGradients::dk, gradients.dk, gradients.accumulate_k);
  add(&KeyGradients::dv, gradients.dv, gradients.accumulate_v);
}

struct BackwardCall {
  const AttentionInputs& in;
  const Tensor& softmax_stats;
  Dims dims;
  Pairs pairs;
  HeadOperand q, k, v, dout;
  AttentionGradients& to;
};

/// Score buffers of one block or, with an offset, of some of its lanes.
struct Buffers {
  std::array<real*, 2> p;  ///< the maps, then dS of each map
  /// dO V^T of each map; then the weights of V (dp[0] for both if shared)
  std::array<real*, 2> dp;
  std::array<real*, 2> slopes;  ///< of the soft cap; null: no cap
  Buffers at(Index offset) const {
    const auto moved = [offset](real* x) { return x ? x + offset : nullptr; };
    return {{moved(p[0]), moved(p[1])},
            {moved(dp[0]), moved(dp[1])},
            {moved(slopes[0]), moved(slopes[1])}};
  }
};

using StatsPerQuery = std::array<LaneStats, kBlockRows / kSimdWidth>;

/// Returns the row statistics of a block in one map, 0 beyond its last query.
StatsPerQuery load_stats(const Tensor& stats, const Block& block, Index map) {
  StatsPerQuery loaded;
  for_each_lanes(block, [&](const Lanes& lanes) {
    const SoftmaxStats* from =
        &softmax_stats_at(stats, block.b, block.head, map, block.begin + lanes.first);
    loaded[lanes.number()] = {
        vector_of<real>([&](Index i) { return i < lanes.count ? from[i].max : 0; }),
        vector_of<real>([&](Index i) { return i < lanes.count ? from[i].inverse_sum : 0; })};
  });
  return loaded;
}

struct Work {
  Block block;
  const OutputHead& output;
  bool shared_value;  ///< both maps use one dA and one product with V
  Buffers buffers;
  /// Q of each map, whose panels become those of dQ, and dO. In the tensors their rows are far
  /// apart, and would compete for the same sets of the L1 cache.
  std::array<QueryRows, 2> queries;
  QueryRows dout;
  RoundedTile& rounded;  ///< weights of one product after the other
  PerQuery lambda;
  std::array<StatsPerQuery, 2> stats{};  ///< of each map
  std::array<PerQuery, 2> r{};           ///< sums of A_m o dA
};

/// Packs the queries of each map and dO as right operands.
void pack_queries_of(const BackwardCall& call, const Work& work) {
  const Block& block = work.block;
  pack_queries(call.dout.rows_of(block.b, block.head), block, 1, work.dout);
  for (Index map = 0; map < call.dims.maps; ++map) {
    pack_queries(call.q.rows_of(block.b, work.output.query[map]), block, call.in.scale,
                 work.queries[map]);
  }
}

/// Computes the maps and dA of a tile and continues r.
void tile_forward(const BackwardCall& call, Work& work, const Tile& tile) {
  const Dims& dims = call.dims;
  const Block& block = work.block;
  const Buffers to = work.buffers.at(tile.offset());
  for (Index map = 0; map < dims.maps; ++map) {
    if (map == 0 || !work.shared_value) {
      multiply_panel(call.pairs, call.v.rows_of(block.b, work.output.value[map]), work.dout.panel,
                     1, block, tile, to.dp[map]);
    }
    if (tile.maps[map]) {
      multiply_panel(call.pairs, call.k.rows_of(block.b, work.output.key[map]),
                     work.queries[map].panel, call.in.scale, block, tile, to.p[map]);
    }
    for_each_lanes(block, tile, [&](const Lanes& lanes) {
      const Buffers at = to.at(lanes.offset(tile));
      cap_and_mask(call.in, block, tile, map, lanes, at.p[map], at.slopes[map]);
      Simd& r = work.r[map][lanes.number()];
      r = recompute_softmax(at.p[map], at.dp[work.shared_value ? 0 : map], lanes.keys,
                            work.stats[map][lanes.number()], r);
    });
  }
}

/// Stores the gradients of lambda and the sinks of query i, which follow from its r.
void store_row_sums(BackwardCall& call, const Work& work, Index i) {
  const Block& block = work.block;
  const Index t = block.begin + i, token = block.b * call.dims.seq + t;
  const auto of_query = [i](const PerQuery& x) { return x[i / kSimdWidth][i % kSimdWidth]; };
  const auto r = [&](Index map) { return of_query(work.r[map]); };
  const std::array<real, 2> coefficient{1, -of_query(work.lambda)};
  for (Index map = 0; map < call.dims.maps; ++map) {
    if (!call.to.dsinks.allocated()) break;
    const Index query = work.output.query[map];
    const real probability =
        sink_of(call.in, query)
            .probability(softmax_stats_at(call.softmax_stats, block.b, block.head, map, t));
    call.to.dsinks.row(token)[query] = -coefficient[map] * probability * r(map);
  }
  if (call.to.dlambda.allocated()) call.to.dlambda.row(token)[block.head] = -r(1);
}

/// Turns maps and dA of some queries of a tile into the gradients of scores and the weights of V.
void lanes_backward(const BackwardCall& call, const Work& work, const Tile& tile,
                    const Lanes& lanes) {
  const Buffers at = work.buffers.at(tile.offset() + lanes.offset(tile));
  const Index keys = lanes.keys;
  const auto scale = static_cast<real>(call.in.scale);
  const Simd& lambda = work.lambda[lanes.number()];
  const std::array<Simd, 2> coefficient{1, -lambda};
  const std::array<Simd, 2> r{work.r[0][lanes.number()], work.r[1][lanes.number()]};
  if (call.dims.maps == 2 && work.shared_value) {
    differential_backward(at.p[0], at.p[1], at.dp[0], keys, r[0], r[1], scale, lambda);
  } else {
    for (Index map = 0; map < call.dims.maps; ++map) {
      softmax_backward(at.p[map], at.dp[map], keys, r[map], scale * coefficient[map],
                       coefficient[map]);
    }
  }
  for (Index map = 0; map < call.dims.maps; ++map) {
    if (at.slopes[map]) multiply(at.p[map], at.slopes[map], keys);
    finish_weights(tile, lanes, at.p[map]);
    if (map == 0 || !work.shared_value) finish_weights(tile, lanes, at.dp[map]);
  }
}

/// One head of the gradient of keys or values.
struct KeyHead {
  Tensor& gradient;
  Index head, width;
  bool first;  ///< use of its keys
};

/// Adds weights times rows of the queries to the gradients of the keys of a tile.
void add_to_keys(Pairs pairs, const Weights& weights, const Block& block, const Tile& tile,
                 const QueryRows& queries, const KeyHead& to) {
  const bool overwrites = to.first && tile.diagonal;  // comes before any other use
  multiply_rows(pairs, weights, block, tile, queries.rows, to.width,
                head_data(to.gradient, block.b, to.head, tile.position),
                to.gradient.shape()[2] * to.width, overwrites ? Accumulate::no : Accumulate::yes);
}

/// Adds dV, dQ and dK of a tile from its weights of V and the gradients of its scores.
void tile_backward(BackwardCall& call, const Work& work, const Tile& tile, KeyGradients& to) {
  const Dims& dims = call.dims;
  const Block& block = work.block;
  const Buffers at = work.buffers.at(tile.offset());
  const auto weights = [&](const real* values, For use) {
    return weights_of(call.pairs, block, tile, values, use, work.rounded);
  };
  for (Index map = 0; map < (work.shared_value ? 1 : 2); ++map) {
    add_to_keys(call.pairs, weights(at.dp[map], For::rows), block, tile, work.dout,
                {to.dv, work.output.value[map], dims.value_dim, to.first_value[block.head][map]});
  }
  for (Index map = 0; map < dims.maps; ++map) {
    // The gradients of a map that does not read the tile are 0; a first tile overwrites dQ.
    if (!tile.maps[map] && !tile.first) continue;
    const Index key = work.output.key[map];
    const Weights scores = weights(at.p[map], For::both);
    multiply_weights(call.pairs, call.k.rows_of(block.b, key), scores, block, tile,
                     work.queries[map].panel, call.to.accumulate_q);
    add_to_keys(call.pairs, scores, block, tile, work.queries[map],
                {to.dk, key, dims.head_dim, to.first_key[block.head][map]});
  }
}

/// Elements of the buffers and panels of one thread.
Index scratch_size(const Dims& dims, bool capped) {
  return (capped ? 6 : 4) * dims.map_size() + 4 * panel_size(dims.head_dim) +
         2 * panel_size(dims.value_dim);
}
void backward_block(BackwardCall& call, const Block& block, real* scratch, KeyGradients& to) {
  const OutputHead& output = call.in.mapping.outputs[block.head];
  const Index size = call.dims.map_size(), panel = panel_size(call.dims.head_dim);
  const bool capped = call.in.logit_softcap > 0;
  const auto map_at = [&](Index i) { return scratch + i * size; };
  real* panels = map_at(capped ? 6 : 4);
  const Buffers buffers{.p = {map_at(0), map_at(1)},
                        .dp = {map_at(2), map_at(3)},
                        .slopes = {capped ? map_at(4) : nullptr, capped ? map_at(5) : nullptr}};
  RoundedTile rounded;
  Work work{.block = block,
            .output = output,
            .shared_value = call.in.mapping.shares_value(output),
            .buffers = buffers,
            .queries = {{{panels, panels + 2 * panel}, {panels + panel, panels + 3 * panel}}},
            .dout = {panels + 4 * panel, panels + 4 * panel + panel_size(call.dims.value_dim)},
            .rounded = rounded,
            .lambda = lambda_of(call.in, block)};
  for (Index map = 0; map < call.dims.maps; ++map)
    work.stats[map] = load_stats(call.softmax_stats, block, map);
  pack_queries_of(call, work);
  for_each_tile(block, [&](const Tile& tile) { tile_forward(call, work, tile); });
  for (Index i = 0; i < block.rows; ++i) store_row_sums(call, work, i);
  const Index width = call.dims.head_dim, dq_stride = call.in.mapping.query_heads * width;
  const auto dq = [&](Index map) {
    return head_data(call.to.dq, block.b, output.query[map], block.begin);
  };
  for (Index map = 0; map < call.dims.maps; ++map) {
    if (call.to.accumulate_q == Accumulate::yes)
      pack_panel({dq(map), block.rows, width, dq_stride}, 1, work.queries[map].panel);
  }
  for_each_tile(block, [&](const Tile& tile) {
    for_each_lanes(block, tile,
                   [&](const Lanes& lanes) { lanes_backward(call, work, tile, lanes); });
    tile_backward(call, work, tile, to);
  });
  for (Index map = 0; map < call.dims.maps; ++map)
    store_panel(work.queries[map].panel, width, block, dq(map), dq_stride);
}

}  // namespace

Index attention_backward_parts(const HeadMapping& mapping, Index batch, Index seq) {
  constexpr Index kEnough = 16;
  const Index groups = std::ssize(mapping.groups());
  const Index tasks = std::max(Index{1}, batch * groups);
  const Index pairs = mapping.heads_out() / groups * ceil_div(seq, kBlockRows);
  return std::clamp(ceil_div(kEnough, tasks), Index{1}, std::max(Index{1}, pairs));
}

void attention_backward(const AttentionInputs& in, const AttentionOutputs& forward,
                        const Tensor& dout, AttentionGradients& gradients) {
  const RoundedInputs& rounded = forward.rounded;
  const Dims dims = dims_of(in, rounded);
  require_shape(rounded.q.allocated() == (in.precision != Precision::full), "attention",
                "forward was in another precision; need the same");
  const HeadOperand q(in.q, rounded.q), k(in.k, rounded.k), v(in.v, rounded.v),
      cotangent(dout, rounded.q.allocated() ? RoundedHeads(dout) : RoundedHeads());
  BackwardCall call{in,       forward.softmax_stats, dims, tile::pairs_of(in.precision),
                    q,        k.transposable(),      v,    cotangent,
                    gradients};
  if (gradients.accumulate_q == Accumulate::no && !in.mapping.reads_all_queries())
    gradients.dq.fill(0);  // no block overwrites heads that nothing reads
  const auto groups = in.mapping.groups();
  const Index group_count = std::ssize(groups);
  const Selections selections(in, rounded);  // the choice of forward
  const Index parts = attention_backward_parts(in.mapping, dims.batch, dims.seq);
  // One owner adds to the gradients of the keys of a sequence in order; several parts have their
  // own.
  std::vector<KeyGradients> to;
  for (Index part = 0; part < parts; ++part) {
    to.push_back(parts == 1 ? own_key_gradients(in.mapping, gradients)
                            : part_of_key_gradients(in.mapping, gradients));
  }
  Tensor scratch = Tensor::empty({num_threads(), scratch_size(dims, in.logit_softcap > 0)});
  parallel_for(dims.batch * group_count * parts, [&](Index task) {
    const Index part = task % parts, b = task / parts / group_count;
    const std::vector<Index>& heads = groups[task / parts % group_count];
    const Index pairs = std::ssize(heads) * dims.tasks();
    for (Index pair = part * pairs / parts; pair < (part + 1) * pairs / parts; ++pair) {
      for_each_block(in, dims, selections, b, heads[pair / dims.tasks()], pair % dims.tasks(),
                     [&](const Block& block) {
                       backward_block(call, block, scratch.row(thread_index()), to[part]);
                     });
    }
  });
  if (parts > 1) add_parts(to, gradients);
}

}  // namespace difftape
