#include <algorithm>

#include "core/attention/blocks.h"

namespace difftape {

namespace {

using namespace attention;

/// Everything that the blocks of one call read and write.
struct Call {
  const HeadLayout& layout;
  const AttentionInputs& in;
  const Tensor& row_stats;
  const Tensor& dout;
  Dims dims;
  TransposedHeads keys, values;
  AttentionGradients& to;
};

/// Score buffers of one block or, with an offset, of one of its rows.
struct Buffers {
  std::array<real*, 2> p;   ///< the maps, then dS of each map
  std::array<real*, 2> dp;  ///< dO V^T of each map; then the weights of V, dp[0] of both if shared
  Buffers row(Index offset) const {
    return {{p[0] + offset, p[1] + offset}, {dp[0] + offset, dp[1] + offset}};
  }
};

/// One output head in one block.
struct Work {
  Block block;
  const HeadRoute& route;
  bool shared_value;  ///< one dP and one product with V serve both maps
};

/// The scores of each map and dP of a block.
void multiply_forward(const Call& call, const Work& work, const Buffers& to) {
  const Dims& dims = call.dims;
  const Block& block = work.block;
  const Operand dout =
      head_of(call.dout, block.b, block.head).rows(block.begin, block.rows, dims.value_dim);
  for (size_t map = 0; map < static_cast<size_t>(dims.maps); ++map) {
    const Head q = head_of(call.in.q, block.b, work.route.query[map]);
    multiply_panels(q.rows(block.begin, block.rows, dims.head_dim),
                    call.keys.panels(block.b, work.route.key[map]), block, to.p[map], dims.stride);
    if (map == 0 || !work.shared_value) {
      multiply_panels(dout, call.values.panels(block.b, work.route.value[map]), block, to.dp[map],
                      dims.stride);
    }
  }
}

/// Row i: the gradients of its scores and the weights of V; those of lambda and the sinks.
void row_backward(Call& call, const Work& work, Index i, const Buffers& row) {
  const Dims& dims = call.dims;
  const Block& block = work.block;
  const Index t = block.begin + i, width = block.width(i), token = block.b * dims.seq + t;
  const auto scale = static_cast<real>(call.in.scale);
  const real lambda = lambda_at(call.in, dims, block.b, t, block.head);
  const std::array<real, 2> coefficient{1, -lambda};
  std::array<real, 2> r{};
  for (size_t map = 0; map < static_cast<size_t>(dims.maps); ++map) {
    const RowStats& stats =
        row_stats_at(call.row_stats, block.b, block.head, static_cast<Index>(map), t);
    hide(call.in, block, i, row.p[map]);
    r[map] = repeat_softmax(row.p[map], row.dp[work.shared_value ? 0 : map], width, stats);
    if (call.to.dsinks.allocated()) {
      const real probability = sink_of(call.in, work.route.query[map]).probability(stats);
      call.to.dsinks.data()[token * call.layout.query_heads + work.route.query[map]] =
          -coefficient[map] * probability * r[map];
    }
  }
  if (call.to.dlambda.allocated()) {
    call.to.dlambda.data()[token * dims.heads_out + block.head] = -r[1];
  }
  if (dims.maps == 2 && work.shared_value) {
    differential_backward(row.p[0], row.p[1], row.dp[0], width, r[0], r[1], scale, lambda);
    return;
  }
  for (size_t map = 0; map < static_cast<size_t>(dims.maps); ++map) {
    softmax_backward(row.p[map], row.dp[map], width, r[map], scale * coefficient[map],
                     coefficient[map]);
  }
}

void clear_beyond(const Work& work, Index i, Index maps, const Buffers& row) {
  const Index keys = work.block.keys(), width = std::min(work.block.width(i), keys);
  for (size_t map = 0; map < static_cast<size_t>(maps); ++map) {
    std::fill(row.p[map] + width, row.p[map] + keys, real{0});
    if (map == 0 || !work.shared_value) std::fill(row.dp[map] + width, row.dp[map] + keys, real{0});
  }
}

/// dV, dQ and dK from the weights of V and the gradients of the scores.
void multiply_backward(Call& call, const Work& work, const Buffers& buffers) {
  const Dims& dims = call.dims;
  const Block& block = work.block;
  const Head dout = head_of(call.dout, block.b, block.head);
  const auto view = [&](const real* buffer) {
    return Operand{buffer, block.rows, block.keys(), dims.stride};
  };
  for (size_t map = 0; map < (work.shared_value ? 1u : 2u); ++map) {
    tile_gemm(transpose(view(buffers.dp[map])), dout.row(block.begin), dout.stride, dims.value_dim,
              head_data(call.to.dv, block.b, work.route.value[map], block.first_key),
              call.layout.value_heads * dims.value_dim, Into::add);
  }
  for (size_t map = 0; map < static_cast<size_t>(dims.maps); ++map) {
    const Head q = head_of(call.in.q, block.b, work.route.query[map]);
    const Head k = head_of(call.in.k, block.b, work.route.key[map]);
    tile_gemm(view(buffers.p[map]), k.row(block.first_key), k.stride, dims.head_dim,
              head_data(call.to.dq, block.b, work.route.query[map], block.begin),
              call.layout.query_heads * dims.head_dim, call.to.into_q);
    tile_gemm(transpose(view(buffers.p[map])), q.row(block.begin), q.stride, dims.head_dim,
              head_data(call.to.dk, block.b, work.route.key[map], block.first_key),
              call.layout.key_heads * dims.head_dim, Into::add);
  }
}

void backward_block(Call& call, const Block& block, const Buffers& buffers) {
  const HeadRoute& route = call.layout.routes[static_cast<size_t>(block.head)];
  const Work work{block, route, call.dims.maps == 1 || route.value[0] == route.value[1]};
  multiply_forward(call, work, buffers);
  for (Index i = 0; i < block.rows; ++i) {
    const Buffers row = buffers.row(i * call.dims.stride);
    row_backward(call, work, i, row);
    clear_beyond(work, i, call.dims.maps, row);
  }
  multiply_backward(call, work, buffers);
}

}  // namespace

void attention_backward(const HeadLayout& layout, const AttentionInputs& in,
                        const Tensor& row_stats, const Tensor& dout,
                        AttentionGradients& gradients) {
  const Dims dims = dims_of(layout, in);
  Call call{layout,
            in,
            row_stats,
            dout,
            dims,
            TransposedHeads(in.k, layout.key_heads, dims.head_dim, in.scale),
            TransposedHeads(in.v, layout.value_heads, dims.value_dim, 1),
            gradients};
  if (gradients.into_k == Into::overwrite) gradients.dk.fill(0);
  if (gradients.into_v == Into::overwrite) gradients.dv.fill(0);
  const auto groups = layout.groups();
  const auto group_count = static_cast<Index>(groups.size());
  const Index map_size = dims.block * dims.stride;
  Tensor scratch = Tensor::empty({num_threads(), 4 * map_size});
  // One owner a sequence and group of key and value heads: it adds to their gradients in order.
  parallel_for(dims.batch * group_count, [&](Index task) {
    real* memory = scratch.data() + thread_index() * 4 * map_size;
    const Buffers buffers{{memory, memory + map_size},
                          {memory + 2 * map_size, memory + 3 * map_size}};
    for (Index head : groups[static_cast<size_t>(task % group_count)]) {
      for (Index begin = 0; begin < dims.seq; begin += dims.block) {
        backward_block(call, make_block(in, dims, task / group_count, head, begin), buffers);
      }
    }
  });
}

}  // namespace difftape
