// Backward needs one dA and one product with W^T for both maps. One owner has a sequence and a
// group of heads that share keys or values, so their gradients are added in one order; where these
// are fewer than 16, each is cut into parts with gradients of their own, which are added in order.
// Products stop, 32 rows at a time, at the last key that is seen.

#include "core/attention/blocks.h"
#include "core/attention/key_gradients.h"
#include "core/bf16.h"
#include "core/simd.h"
#include "core/softcap.h"

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
  TransposedHeads keys, values;
  AttentionGradients& to;
};

/// Score buffers of one block or, with an offset, of one of its rows.
struct Buffers {
  std::array<real*, 2> p;   ///< the maps, then dS of each map
  std::array<real*, 2> dp;  ///< dO V^T of each map; then the weights of V, dp[0] of both if shared
  std::array<real*, 2> slopes;  ///< of the soft cap on the row that is worked on; null: no cap
  Buffers row(Index offset) const {
    return {{p[0] + offset, p[1] + offset}, {dp[0] + offset, dp[1] + offset}, slopes};
  }
};

/// One output head in one block.
struct Work {
  Block block;
  const OutputHead& output;
  bool shared_value;  ///< both maps use one dA and one product with V
};

/// The scores of each map and dA of a block.
void multiply_forward(const Call& call, const Work& work, const Buffers& to) {
  const Dims& dims = call.dims;
  const Block& block = work.block;
  const Operand dout =
      head_of(call.dout, block.b, block.head).rows(block.begin, block.rows, dims.value_dim);
  for (size_t map = 0; map < static_cast<size_t>(dims.maps); ++map) {
    const Head q = head_of(call.in.q, block.b, work.output.query[map]);
    multiply_panels(q.rows(block.begin, block.rows, dims.head_dim),
                    call.keys.panels(block.b, work.output.key[map]), block, to.p[map], dims.stride);
    if (map == 0 || !work.shared_value) {
      multiply_panels(dout, call.values.panels(block.b, work.output.value[map]), block, to.dp[map],
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
  const real lambda = lambda_at(call.in, block.b, t, block.head);
  const std::array<real, 2> coefficient{1, -lambda};
  std::array<real, 2> r{};
  for (size_t map = 0; map < static_cast<size_t>(dims.maps); ++map) {
    const SoftmaxStats& stats =
        softmax_stats_at(call.softmax_stats, block.b, block.head, static_cast<Index>(map), t);
    if (row.slopes[map]) {
      softcap(row.p[map], width, static_cast<real>(call.in.logit_softcap), row.slopes[map]);
    }
    mask(call.in, block, i, row.p[map]);
    r[map] = recompute_softmax(row.p[map], row.dp[work.shared_value ? 0 : map], width, stats);
    if (call.to.dsinks.allocated()) {
      const real probability = sink_of(call.in, work.output.query[map]).probability(stats);
      call.to.dsinks.data()[token * call.mapping.query_heads + work.output.query[map]] =
          -coefficient[map] * probability * r[map];
    }
  }
  if (call.to.dlambda.allocated()) {
    call.to.dlambda.data()[token * dims.heads_out + block.head] = -r[1];
  }
  if (dims.maps == 2 && work.shared_value) {
    differential_backward(row.p[0], row.p[1], row.dp[0], width, r[0], r[1], scale, lambda);
  } else {
    for (size_t map = 0; map < static_cast<size_t>(dims.maps); ++map) {
      softmax_backward(row.p[map], row.dp[map], width, r[map], scale * coefficient[map],
                       coefficient[map]);
    }
  }
  for (size_t map = 0; map < static_cast<size_t>(dims.maps); ++map) {
    if (row.slopes[map]) multiply(row.p[map], row.slopes[map], width);
  }
}

/// What products read of row i: zeros beyond it, and bfloat16s if asked.
void round_and_pad(const Call& call, const Work& work, Index i, const Buffers& row) {
  const auto finish = [&](real* x) {
    if (call.in.round_maps) round_bf16(x, work.block.width(i));
    zero_tail(work.block, i, x);
  };
  for (size_t map = 0; map < static_cast<size_t>(call.dims.maps); ++map) {
    finish(row.p[map]);
    if (map == 0 || !work.shared_value) finish(row.dp[map]);
  }
}

/// A head of the gradients of keys or values.
struct KeyHead {
  Tensor& gradient;
  Index head, width;
  bool first;  ///< to touch its keys
};

/// Adds weights^T rows to the gradients of the keys of a block, weights being (rows x keys).
void add_to_keys(const real* weights, Index stride, const Block& block, const Head& rows,
                 const KeyHead& to) {
  const Index to_stride = to.gradient.shape()[2] * to.width,
              diagonal = block.begin - block.first_key;
  const auto multiply = [&](Index first_row, Index key, Index end_key, Accumulate accumulate) {
    if (key == end_key) return;
    const Operand part{weights + first_row * stride + key, block.rows - first_row, end_key - key,
                       stride};
    tile_gemm(transpose(part), rows.row(block.begin + first_row), rows.stride, to.width,
              head_data(to.gradient, block.b, to.head, block.first_key + key), to_stride,
              accumulate);
  };
  multiply(0, 0, diagonal, Accumulate::yes);
  for_each_step(block, [&](Index i, Index count) {
    multiply(i, diagonal + i, diagonal + i + count, to.first ? Accumulate::no : Accumulate::yes);
  });
}

/// dV, dQ and dK from the weights of V and the gradients of the scores.
void multiply_backward(Call& call, const Work& work, const Buffers& buffers, KeyGradients& to) {
  const Dims& dims = call.dims;
  const Block& block = work.block;
  const auto head = static_cast<size_t>(block.head);
  const Head dout = head_of(call.dout, block.b, block.head);
  for (size_t map = 0; map < (work.shared_value ? 1u : 2u); ++map) {
    add_to_keys(buffers.dp[map], dims.stride, block, dout,
                {to.dv, work.output.value[map], dims.value_dim, to.first_value[head][map]});
  }
  for (size_t map = 0; map < static_cast<size_t>(dims.maps); ++map) {
    const Index query = work.output.query[map], key = work.output.key[map];
    multiply_rows(buffers.p[map], dims.stride, block, head_of(call.in.k, block.b, key),
                  dims.head_dim, head_data(call.to.dq, block.b, query, block.begin),
                  call.mapping.query_heads * dims.head_dim, call.to.accumulate_q);
    add_to_keys(buffers.p[map], dims.stride, block, head_of(call.in.q, block.b, query),
                {to.dk, key, dims.head_dim, to.first_key[head][map]});
  }
}

void backward_block(Call& call, const Block& block, const Buffers& buffers, KeyGradients& to) {
  const OutputHead& output = call.mapping.outputs[static_cast<size_t>(block.head)];
  const Work work{block, output, call.dims.maps == 1 || output.value[0] == output.value[1]};
  multiply_forward(call, work, buffers);
  for (Index i = 0; i < block.rows; ++i) {
    const Buffers row = buffers.row(i * call.dims.stride);
    row_backward(call, work, i, row);
    round_and_pad(call, work, i, row);
  }
  multiply_backward(call, work, buffers, to);
}

}  // namespace

void attention_backward(const HeadMapping& mapping, const AttentionInputs& in,
                        const Tensor& softmax_stats, const Tensor& dout,
                        AttentionGradients& gradients) {
  const Dims dims = dims_of(mapping, in);
  Call call{mapping,
            in,
            softmax_stats,
            dout,
            dims,
            TransposedHeads(in.k, mapping.key_heads, dims.head_dim, in.scale),
            TransposedHeads(in.v, mapping.value_heads, dims.value_dim, 1),
            gradients};
  const auto groups = mapping.groups();
  const auto group_count = static_cast<Index>(groups.size());
  const Index parts =
      attention_backward_parts(mapping, dims.batch, dims.seq, in.visible.sliding_window);
  // One owner adds to the gradients of a sequence's keys in order; several parts have memory each.
  std::vector<KeyGradients> to;
  for (Index part = 0; part < parts; ++part) {
    to.push_back(parts == 1 ? own_key_gradients(mapping, gradients)
                            : part_of_key_gradients(mapping, gradients));
  }
  const Index map_size = dims.block * dims.stride;
  const Index slopes = in.logit_softcap > 0 ? dims.stride : 0;
  const Index scratch_size = 4 * map_size + 2 * slopes;
  Tensor scratch = Tensor::empty({num_threads(), scratch_size});
  parallel_for(dims.batch * group_count * parts, [&](Index task) {
    real* memory = scratch.data() + thread_index() * scratch_size;
    real* after = slopes > 0 ? memory + 4 * map_size : nullptr;
    const Buffers buffers{{memory, memory + map_size},
                          {memory + 2 * map_size, memory + 3 * map_size},
                          {after, after ? after + slopes : nullptr}};
    const Index part = task % parts, b = task / parts / group_count;
    const auto& heads = groups[static_cast<size_t>(task / parts % group_count)];
    const Index pairs = static_cast<Index>(heads.size()) * dims.blocks();
    for (Index pair = part * pairs / parts; pair < (part + 1) * pairs / parts; ++pair) {
      const Index head = heads[static_cast<size_t>(pair / dims.blocks())];
      backward_block(call, make_block(in, dims, b, head, pair % dims.blocks() * dims.block),
                     buffers, to[static_cast<size_t>(part)]);
    }
  });
  if (parts > 1) add_parts(to, gradients);
}

}  // namespace difftape
