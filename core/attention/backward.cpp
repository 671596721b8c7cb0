// Backward needs one dA and one product with W^T for both maps. One owner has a sequence and a
// group of heads that share keys or values, so their gradients are added in one order; where these
// are fewer than 16, each is cut into parts with gradients of their own, which are added in order.
// Products stop, 32 rows at a time, at the last key that is seen.

#include "core/attention/blocks.h"
#include "core/attention/key_gradients.h"

namespace difftape {

namespace {

using namespace attention;

/// Everything that the blocks of one call read and write.
struct Call {
  const HeadMapping& mapping;
  const AttentionInputs& in;
  const Tensor& softmax_stats;
  const Tensor& dout;
  Dims dims;
  AttentionGradients& to;
};

/// Score buffers of one block or, with an offset, of some of its lanes.
struct Buffers {
  std::array<real*, 2> p;   ///< the maps, then dS of each map
  std::array<real*, 2> dp;  ///< dO V^T of each map; then the weights of V, dp[0] of both if shared
  std::array<real*, 2> slopes;  ///< of the soft cap; null: no cap
  Buffers at(Index offset) const {
    const auto moved = [offset](real* x) { return x ? x + offset : nullptr; };
    return {{moved(p[0]), moved(p[1])},
            {moved(dp[0]), moved(dp[1])},
            {moved(slopes[0]), moved(slopes[1])}};
  }
};

/// One output head in one block.
struct Work {
  Block block;
  const OutputHead& output;
  bool shared_value;  ///< both maps use one dA and one product with V
  Buffers buffers;
  std::array<real*, 2> queries;  ///< panels of each map
  real* dout;                    ///< panel
  std::array<PerQuery, 2> r{};   ///< sums of A_m o dA
};

/// The queries of each map and dO as right operands of the products with keys and values.
void pack_panels_of(const Call& call, const Work& work) {
  const Dims& dims = call.dims;
  const Block& block = work.block;
  const Head dout = head_of(call.dout, block.b, block.head);
  pack_queries(dout.rows(block.begin, block.rows, dims.value_dim), 1, work.dout);
  for (size_t map = 0; map < static_cast<size_t>(dims.maps); ++map) {
    const Head q = head_of(call.in.q, block.b, work.output.query[map]);
    pack_queries(q.rows(block.begin, block.rows, dims.head_dim), call.in.scale, work.queries[map]);
  }
}

/// The maps and dA of a tile; r goes on.
void tile_forward(const Call& call, Work& work, const Tile& tile) {
  const Dims& dims = call.dims;
  const Block& block = work.block;
  const Buffers to = work.buffers.at(tile.offset());
  for (size_t map = 0; map < static_cast<size_t>(dims.maps); ++map) {
    if (map == 0 || !work.shared_value) {
      multiply_panel(head_of(call.in.v, block.b, work.output.value[map]), dims.value_dim, work.dout,
                     block, tile, to.dp[map]);
    }
    multiply_panel(head_of(call.in.k, block.b, work.output.key[map]), dims.head_dim,
                   work.queries[map], block, tile, to.p[map]);
    for_each_lanes(block, tile, [&](const Lanes& lanes) {
      const Buffers at = to.at(lanes.offset(tile));
      cap_and_mask(call.in, block, tile, lanes, at.p[map], at.slopes[map]);
      Simd& r = work.r[map][lanes.number()];
      r = recompute_softmax(at.p[map], at.dp[work.shared_value ? 0 : map], lanes.keys,
                            load_stats(call.softmax_stats, block, lanes, static_cast<Index>(map)),
                            r);
    });
  }
}

/// What follows from r of a query: the gradients of lambda and the sinks.
void store_row_sums(Call& call, const Work& work, Index i) {
  const Block& block = work.block;
  const Index t = block.begin + i, token = block.b * call.dims.seq + t;
  const auto r = [&](size_t map) {
    return work.r[map][static_cast<size_t>(i / kSimdWidth)][i % kSimdWidth];
  };
  const std::array<real, 2> coefficient{1, -lambda_at(call.in, block.b, t, block.head)};
  for (size_t map = 0; map < static_cast<size_t>(call.dims.maps); ++map) {
    if (!call.to.dsinks.allocated()) break;
    const Index query = work.output.query[map];
    const real probability =
        sink_of(call.in, query)
            .probability(softmax_stats_at(call.softmax_stats, block.b, block.head,
                                          static_cast<Index>(map), t));
    call.to.dsinks.row(token)[query] = -coefficient[map] * probability * r(map);
  }
  if (call.to.dlambda.allocated()) call.to.dlambda.row(token)[block.head] = -r(1);
}

/// Some queries of a tile: the gradients of their scores and the weights of V.
void lanes_backward(const Call& call, const Work& work, const Tile& tile, const Lanes& lanes) {
  const Block& block = work.block;
  const Buffers at = work.buffers.at(tile.offset() + lanes.offset(tile));
  const Index keys = lanes.keys;
  const auto scale = static_cast<real>(call.in.scale);
  const Simd lambda = lambda_of(call.in, block, lanes);
  const std::array<Simd, 2> coefficient{1, -lambda};
  const std::array<Simd, 2> r{work.r[0][lanes.number()], work.r[1][lanes.number()]};
  if (call.dims.maps == 2 && work.shared_value) {
    differential_backward(at.p[0], at.p[1], at.dp[0], keys, r[0], r[1], scale, lambda);
  } else {
    for (size_t map = 0; map < static_cast<size_t>(call.dims.maps); ++map) {
      softmax_backward(at.p[map], at.dp[map], keys, r[map], scale * coefficient[map],
                       coefficient[map]);
    }
  }
  for (size_t map = 0; map < static_cast<size_t>(call.dims.maps); ++map) {
    if (at.slopes[map]) multiply(at.p[map], at.slopes[map], keys);
    finish_weights(tile, lanes, call.in.round_maps, at.p[map]);
    if (map == 0 || !work.shared_value) finish_weights(tile, lanes, call.in.round_maps, at.dp[map]);
  }
}

/// A head of the gradients of keys or values.
struct KeyHead {
  Tensor& gradient;
  Index head, width;
  bool first;  ///< to touch its keys
};

/// Adds weights (keys x queries) times rows of the queries to the gradients of the keys of a tile.
void add_to_keys(const real* weights, const Block& block, const Tile& tile, const Head& rows,
                 const KeyHead& to) {
  const bool overwrites = to.first && tile.diagonal;  // it comes before any other
  tile_gemm({weights, tile.keys, block.rows - tile.query, kBlockRows},
            rows.row(block.begin + tile.query), rows.stride, to.width,
            head_data(to.gradient, block.b, to.head, block.first_key + tile.key),
            to.gradient.shape()[2] * to.width, overwrites ? Accumulate::no : Accumulate::yes);
}

/// dV, dQ and dK of a tile from its weights of V and the gradients of its scores.
void tile_backward(Call& call, const Work& work, const Tile& tile, KeyGradients& to) {
  const Dims& dims = call.dims;
  const Block& block = work.block;
  const Buffers at = work.buffers.at(tile.offset());
  const auto head = static_cast<size_t>(block.head);
  const Head dout = head_of(call.dout, block.b, block.head);
  for (size_t map = 0; map < (work.shared_value ? 1u : 2u); ++map) {
    add_to_keys(at.dp[map], block, tile, dout,
                {to.dv, work.output.value[map], dims.value_dim, to.first_value[head][map]});
  }
  for (size_t map = 0; map < static_cast<size_t>(dims.maps); ++map) {
    const Index query = work.output.query[map], key = work.output.key[map];
    multiply_rows(at.p[map], block, tile, head_of(call.in.k, block.b, key), dims.head_dim,
                  head_data(call.to.dq, block.b, query, block.begin),
                  call.mapping.query_heads * dims.head_dim, call.to.accumulate_q);
    add_to_keys(at.p[map], block, tile, head_of(call.in.q, block.b, query),
                {to.dk, key, dims.head_dim, to.first_key[head][map]});
  }
}

/// Numbers that the buffers and panels of a thread take.
Index scratch_size(const Dims& dims, bool capped) {
  return (capped ? 6 : 4) * dims.map_size() + 2 * panel_size(dims.head_dim) +
         panel_size(dims.value_dim);
}
void backward_block(Call& call, const Block& block, real* scratch, KeyGradients& to) {
  const OutputHead& output = call.mapping.outputs[static_cast<size_t>(block.head)];
  const Index size = call.dims.map_size(), panel = panel_size(call.dims.head_dim);
  const bool capped = call.in.logit_softcap > 0;
  const auto map_at = [&](Index i) { return scratch + i * size; };
  real* panels = map_at(capped ? 6 : 4);
  Work work{block,
            output,
            call.dims.maps == 1 || output.value[0] == output.value[1],
            {{map_at(0), map_at(1)},
             {map_at(2), map_at(3)},
             {capped ? map_at(4) : nullptr, capped ? map_at(5) : nullptr}},
            {panels, panels + panel},
            panels + 2 * panel};
  pack_panels_of(call, work);
  for_each_tile(block, [&](const Tile& tile) { tile_forward(call, work, tile); });
  for (Index i = 0; i < block.rows; ++i) store_row_sums(call, work, i);
  for_each_tile(block, [&](const Tile& tile) {
    for_each_lanes(block, tile,
                   [&](const Lanes& lanes) { lanes_backward(call, work, tile, lanes); });
    tile_backward(call, work, tile, to);
  });
}

}  // namespace

void attention_backward(const HeadMapping& mapping, const AttentionInputs& in,
                        const Tensor& softmax_stats, const Tensor& dout,
                        AttentionGradients& gradients) {
  const Dims dims = dims_of(mapping, in);
  Call call{mapping, in, softmax_stats, dout, dims, gradients};
  const auto groups = mapping.groups();
  const auto group_count = static_cast<Index>(groups.size());
  const Index parts = attention_backward_parts(mapping, dims.batch, dims.seq);
  // One owner adds to the gradients of a sequence's keys in order; several parts have memory each.
  std::vector<KeyGradients> to;
  for (Index part = 0; part < parts; ++part) {
    to.push_back(parts == 1 ? own_key_gradients(mapping, gradients)
                            : part_of_key_gradients(mapping, gradients));
  }
  Tensor scratch = Tensor::empty({num_threads(), scratch_size(dims, in.logit_softcap > 0)});
  parallel_for(dims.batch * group_count * parts, [&](Index task) {
    const Index part = task % parts, b = task / parts / group_count;
    const auto& heads = groups[static_cast<size_t>(task / parts % group_count)];
    const Index pairs = static_cast<Index>(heads.size()) * dims.blocks();
    for (Index pair = part * pairs / parts; pair < (part + 1) * pairs / parts; ++pair) {
      const Index head = heads[static_cast<size_t>(pair / dims.blocks())];
      backward_block(call, make_block(in, dims, b, head, pair % dims.blocks() * kBlockRows),
                     scratch.row(thread_index()), to[static_cast<size_t>(part)]);
    }
  });
  if (parts > 1) add_parts(to, gradients);
}

}  // namespace difftape
