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

/// Score buffers of one block, (rows x keys) each.
struct Buffers {
  real* p[2];   ///< the maps, then dS of each map
  real* dp[2];  ///< dO V^T of each map; the first, then W (or the second, -lambda P2)
};

struct Block {
  Index b, head, begin, rows;
  Index keys() const { return begin + rows; }
};

/// scores := the probabilities that forward computed, bit for bit.
void repeat_softmax(Row scores, const RowStats& stats, real scale) {
  scores = (scores * scale - stats.max).exp() * stats.inverse_sum;
}

/// Row t of one map: p := scale coefficient P o (dP - r), dp := coefficient P; returns r.
real softmax_row_backward(Row p, Row dp, const RowStats& stats, real scale, real coefficient) {
  repeat_softmax(p, stats, scale);
  const real r = (p * dp).sum(), factor = scale * coefficient;
  for (Index j = 0; j < p.size(); ++j) {
    const real probability = p[j];
    p[j] = factor * probability * (dp[j] - r);
    dp[j] = coefficient * probability;
  }
  return r;
}

/// Both maps of row t over one dP: p_m := dS_m, dp := P1 - lambda P2; returns r2.
real differential_row_backward(Row p1, Row p2, Row dp, const RowStats (&stats)[2], real scale,
                               real lambda) {
  repeat_softmax(p1, stats[0], scale);
  repeat_softmax(p2, stats[1], scale);
  const real r1 = (p1 * dp).sum(), r2 = (p2 * dp).sum();
  const real factor2 = -lambda * scale;
  for (Index j = 0; j < p1.size(); ++j) {
    const real a1 = p1[j], a2 = p2[j], d = dp[j];
    p1[j] = scale * a1 * (d - r1);
    p2[j] = factor2 * a2 * (d - r2);
    dp[j] = a1 - lambda * a2;
  }
  return r2;
}

/// Scores and dP of a block, then row by row the gradients of the scores and the weights of V.
void rows_backward(Call& call, const HeadRoute& route, const Block& block, bool shared_value,
                   const Buffers& to) {
  const Dims& dims = call.dims;
  const Head dout = head_of(call.dout, block.b, block.head);
  for (size_t map = 0; map < static_cast<size_t>(dims.maps); ++map) {
    multiply_panels(
        head_of(call.in.q, block.b, route.query[map]).rows(block.begin, block.rows, dims.head_dim),
        call.keys.panels(block.b, route.key[map]), block.keys(), to.p[map], dims.stride);
    if (map == 0 || !shared_value) {
      multiply_panels(dout.rows(block.begin, block.rows, dims.value_dim),
                      call.values.panels(block.b, route.value[map]), block.keys(), to.dp[map],
                      dims.stride);
    }
  }
  const real scale = static_cast<real>(call.in.scale);
  for (Index i = 0; i < block.rows; ++i) {
    const Index t = block.begin + i, visible = t + 1;
    const auto row = [&](real* buffer) { return Row(buffer + i * dims.stride, visible); };
    const real lambda = lambda_at(call.in, dims, block.b, t, block.head);
    const auto stats_of = [&](Index map) {
      return row_stats_at(call.row_stats, block.b, block.head, map, t);
    };
    const RowStats stats[2] = {stats_of(0), stats_of(dims.maps - 1)};
    real r2 = 0;
    if (dims.maps == 2 && shared_value) {
      r2 = differential_row_backward(row(to.p[0]), row(to.p[1]), row(to.dp[0]), stats, scale,
                                     lambda);
    } else {
      softmax_row_backward(row(to.p[0]), row(to.dp[0]), stats[0], scale, 1);
      if (dims.maps == 2) {
        r2 = softmax_row_backward(row(to.p[1]), row(to.dp[1]), stats[1], scale, -lambda);
      }
    }
    if (call.to.dlambda.allocated()) {
      call.to.dlambda.data()[(block.b * dims.seq + t) * dims.heads_out + block.head] = -r2;
    }
    const auto hide = [&](real* buffer) {
      real* first = buffer + i * dims.stride;
      std::fill(first + visible, first + block.keys(), real{0});
    };
    for (Index map = 0; map < dims.maps; ++map) hide(to.p[map]);
    hide(to.dp[0]);
    if (!shared_value) hide(to.dp[1]);
  }
}

void backward_block(Call& call, const Block& block, const Buffers& buffers) {
  const Dims& dims = call.dims;
  const HeadRoute& route = call.layout.routes[static_cast<size_t>(block.head)];
  const bool shared_value = dims.maps == 1 || route.value[0] == route.value[1];
  rows_backward(call, route, block, shared_value, buffers);

  const Head dout = head_of(call.dout, block.b, block.head);
  const auto view = [&](const real* buffer) {
    return Operand{buffer, block.rows, block.keys(), dims.stride};
  };
  for (size_t map = 0; map < (shared_value ? 1u : 2u); ++map) {
    tile_gemm(transpose(view(buffers.dp[map])), dout.row(block.begin), dout.stride, dims.value_dim,
              head_data(call.to.dv, block.b, route.value[map], 0),
              call.layout.value_heads * dims.value_dim, Into::add);
  }
  for (size_t map = 0; map < static_cast<size_t>(dims.maps); ++map) {
    const Head q = head_of(call.in.q, block.b, route.query[map]);
    const Head k = head_of(call.in.k, block.b, route.key[map]);
    tile_gemm(view(buffers.p[map]), k.data, k.stride, dims.head_dim,
              head_data(call.to.dq, block.b, route.query[map], block.begin),
              call.layout.query_heads * dims.head_dim, call.to.into_q);
    tile_gemm(transpose(view(buffers.p[map])), q.row(block.begin), q.stride, dims.head_dim,
              head_data(call.to.dk, block.b, route.key[map], 0),
              call.layout.key_heads * dims.head_dim, Into::add);
  }
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
            TransposedHeads(in.k, layout.key_heads, dims.head_dim),
            TransposedHeads(in.v, layout.value_heads, dims.value_dim),
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
        backward_block(call,
                       {task / group_count, head, begin, std::min(dims.block, dims.seq - begin)},
                       buffers);
      }
    }
  });
}

}  // namespace difftape
