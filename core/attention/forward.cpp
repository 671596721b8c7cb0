#include "core/attention/blocks.h"

namespace difftape {

namespace {

using namespace attention;

/// One block of queries of one output head.
struct Block {
  Index b, head, begin, rows;
  Index keys() const { return begin + rows; }
};

/// scores := softmax over the visible keys and 0 beyond.
RowStats normalise(real* scores, Index visible, Index keys, real scale) {
  Row row(scores, visible);
  const real top = scale * row.maxCoeff();
  row = (row * scale - top).exp();
  const real inverse_sum = 1 / row.sum();
  row *= inverse_sum;
  std::fill(scores + visible, scores + keys, real{0});
  return {top, inverse_sum};
}

void forward_block(const HeadRoute& route, const Dims& dims, const AttentionInputs& in,
                   const TransposedHeads& keys, const Block& block, real* scratch,
                   AttentionOutputs& result) {
  const Index stride = dims.stride, map_size = dims.block * stride;
  for (Index map = 0; map < dims.maps; ++map) {
    const auto m = static_cast<size_t>(map);
    multiply_panels(
        head_of(in.q, block.b, route.query[m]).rows(block.begin, block.rows, dims.head_dim),
        keys.panels(block.b, route.key[m]), block.keys(), scratch + map * map_size, stride);
  }
  const bool shared_value = dims.maps == 1 || route.value[0] == route.value[1];
  for (Index i = 0; i < block.rows; ++i) {
    const Index t = block.begin + i;
    const real lambda = lambda_at(in, dims, block.b, t, block.head);
    for (Index map = 0; map < dims.maps; ++map) {
      row_stats_at(result.row_stats, block.b, block.head, map, t) = normalise(
          scratch + map * map_size + i * stride, t + 1, block.keys(), static_cast<real>(in.scale));
    }
    if (dims.maps == 2) Row(scratch + map_size + i * stride, t + 1) *= -lambda;
    if (dims.maps == 2 && shared_value) {
      Row(scratch + i * stride, t + 1) += ConstRow(scratch + map_size + i * stride, t + 1);
    }
  }
  for (Index map = 0; map < (shared_value ? 1 : 2); ++map) {
    const Head value = head_of(in.v, block.b, route.value[static_cast<size_t>(map)]);
    tile_gemm({scratch + map * map_size, block.rows, block.keys(), stride}, value.data,
              value.stride, dims.value_dim, head_data(result.out, block.b, block.head, block.begin),
              dims.heads_out * dims.value_dim, map == 0 ? Into::overwrite : Into::add);
  }
}

}  // namespace

AttentionOutputs attention_forward(const HeadLayout& layout, const AttentionInputs& in) {
  const Dims dims = dims_of(layout, in);
  AttentionOutputs result{Tensor::empty({dims.batch, dims.seq, dims.heads_out, dims.value_dim}),
                          Tensor::empty({dims.batch, dims.heads_out, dims.maps, dims.seq, 2})};
  const TransposedHeads keys(in.k, layout.key_heads, dims.head_dim);
  const Index scratch_size = dims.maps * dims.block * dims.stride;
  Tensor scratch = Tensor::empty({num_threads(), scratch_size});
  const Index blocks = (dims.seq + dims.block - 1) / dims.block;
  parallel_for(blocks * dims.batch * dims.heads_out, [&](Index task) {
    // The longest blocks, those at the end of the sequence, start first.
    const Index begin = (blocks - 1 - task / (dims.batch * dims.heads_out)) * dims.block;
    const Index pair = task % (dims.batch * dims.heads_out);
    const Index head = pair % dims.heads_out;
    forward_block(layout.routes[static_cast<size_t>(head)], dims, in, keys,
                  {pair / dims.heads_out, head, begin, std::min(dims.block, dims.seq - begin)},
                  scratch.data() + thread_index() * scratch_size, result);
  });
  return result;
}

}  // namespace difftape
