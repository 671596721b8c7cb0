// For a block of queries, scratch holds the scores of both maps with all of its keys, one row per
// key. Their exponentials are subtracted, multiplied with V once, and divided by the sums last.
// Keys that no query of the block reads are skipped; other masked scores are -inf and become exact
// zeros. A soft cap comes before the mask. A sink takes part in the maximum and sum of its query,
// but has no key.
#include <algorithm>
#include <limits>

#include "core/attention/products.h"
#include "core/simd_functions.h"

namespace difftape {

namespace {

using namespace attention;

struct ForwardCall {
  const AttentionInputs& in;
  Dims dims;
  Pairs pairs;
  HeadOperand q, k, v;
  AttentionOutputs& result;
};

struct Work {
  Block block;
  const OutputHead& output;
  bool shared_value;              ///< one product with V
  std::array<real*, 2> maps;      ///< scores, then numerators, then weights of V
  real* panel;                    ///< of queries, then of the output
  RoundedTile& rounded;           ///< weights of V
  std::array<PerQuery, 2> max{};  ///< of each map
  std::array<PerQuery, 2> sum{};  ///< of the numerators
  PerQuery ratio{};               ///< lambda sum1 / sum2
  LaneStats stats(Index map, const Lanes& lanes) const {
    return {max[map][lanes.number()], 1 / sum[map][lanes.number()]};
  }
};

/// Computes the scores of a map and the maximum of each query.
void score(const ForwardCall& call, Work& work, Index map) {
  const Block& block = work.block;
  const Index query = work.output.query[map];
  const Sink sink = sink_of(call.in, query);
  constexpr real kNone = -std::numeric_limits<real>::infinity();
  work.max[map].fill(sink.present ? sink.logit : kNone);
  const HeadRows keys = call.k.rows_of(block.b, work.output.key[map]);
  pack_queries(call.q.rows_of(block.b, query), block, call.in.scale, {work.panel, nullptr});
  for_each_tile(block, [&](const Tile& tile) {
    real* scores = work.maps[map] + tile.offset();
    if (tile.maps[map]) {
      multiply_panel(call.pairs, keys, work.panel, call.in.scale, block, tile, scores);
    }
    for_each_lanes(block, tile, [&](const Lanes& lanes) {
      real* at = scores + lanes.offset(tile);
      cap_and_mask(call.in, block, tile, map, lanes, at, nullptr);
      Simd& max = work.max[map][lanes.number()];
      max = largest_scores(at, lanes.keys, max);
    });
  });
  for (size_t i = 0; i < work.max[map].size(); ++i)
    work.sum[map][i] = sink.present ? exp_simd(sink.logit - work.max[map][i]) : Simd{};
}

/// Turns the scores of one tile into softmax numerators.
void numerators(Work& work, Index map, const Tile& tile) {
  real* scores = work.maps[map] + tile.offset();
  for_each_lanes(work.block, tile, [&](const Lanes& lanes) {
    Simd& sum = work.sum[map][lanes.number()];
    sum = softmax_numerators(scores + lanes.offset(tile), lanes.keys, work.max[map][lanes.number()],
                             sum);
  });
}

void compute_ratio(const ForwardCall& call, Work& work) {
  const PerQuery lambda = lambda_of(call.in, work.block);
  for (size_t i = 0; i < lambda.size(); ++i)
    work.ratio[i] = lambda[i] * (work.sum[0][i] / work.sum[1][i]);
}

/// Computes the weights of V from the numerators E1 and E2, to be divided by the first sum after
/// the product: E1 - ratio E2 if the maps share V, else E1 and -ratio E2.
void combine_maps(const Work& work, const Tile& tile) {
  for_each_lanes(work.block, tile, [&](const Lanes& lanes) {
    const Index offset = tile.offset() + lanes.offset(tile);
    const Simd& ratio = work.ratio[lanes.number()];
    if (work.shared_value) {
      subtract(work.maps[0] + offset, work.maps[1] + offset, lanes.keys, ratio);
    } else {
      scale(work.maps[1] + offset, lanes.keys, -ratio);
    }
  });
}

/// panel = or += the rows of V of a tile, transposed, times its weights.
void multiply_values(const ForwardCall& call, const Work& work, Index map, const Tile& tile) {
  const Block& block = work.block;
  real* weights = work.maps[map] + tile.offset();
  for_each_lanes(block, tile, [&](const Lanes& lanes) {
    finish_weights(tile, lanes, weights + lanes.offset(tile));
  });
  multiply_weights(call.pairs, call.v.rows_of(block.b, work.output.value[map]),
                   weights_of(call.pairs, block, tile, weights, For::weights, work.rounded), block,
                   tile, work.panel, map == 0 ? Accumulate::no : Accumulate::yes);
}

/// Turns scores into the output rows.
void weigh_values(ForwardCall& call, Work& work) {
  const Block& block = work.block;
  const bool two = call.dims.maps == 2;
  for (Index map = 0; map < (two ? 2 : 0); ++map)
    for_each_tile(block, [&](const Tile& tile) { numerators(work, map, tile); });
  if (two) compute_ratio(call, work);
  for_each_tile(block, [&](const Tile& tile) {
    two ? combine_maps(work, tile) : numerators(work, 0, tile);
    for (Index map = 0; map < (work.shared_value ? 1 : 2); ++map)
      multiply_values(call, work, map, tile);
  });
  const Dims& dims = call.dims;
  for (size_t i = 0; i < work.sum[0].size(); ++i) {
    const Simd inverse = 1 / work.sum[0][i];
    real* at = work.panel + i * kSimdWidth;
    for (Index j = 0; j < dims.value_dim; ++j, at += kBlockRows) store(load(at) * inverse, at);
  }
  store_panel(work.panel, dims.value_dim, block,
              head_data(call.result.out, block.b, block.head, block.begin),
              dims.heads_out * dims.value_dim);
}

/// Elements of the scratch of forward_block.
Index scratch_size(const Dims& dims) {
  return dims.maps * dims.map_size() + panel_size(std::max(dims.head_dim, dims.value_dim));
}
void forward_block(ForwardCall& call, const Block& block, real* scratch) {
  const Index maps = call.dims.maps, size = call.dims.map_size();
  const OutputHead& output = call.in.mapping.outputs[block.head];
  RoundedTile rounded;
  Work work{.block = block,
            .output = output,
            .shared_value = call.in.mapping.shares_value(output),
            .maps = {scratch, scratch + size},
            .panel = scratch + maps * size,
            .rounded = rounded};
  for (Index map = 0; map < maps; ++map) score(call, work, map);
  weigh_values(call, work);
  for (Index map = 0; map < maps; ++map) {
    for_each_lanes(block, [&](const Lanes& lanes) {
      store_stats(work.stats(map, lanes), block, lanes, map, call.result.softmax_stats);
    });
  }
}

}  // namespace

AttentionOutputs attention_forward(const AttentionInputs& in) {
  const Dims dims = dims_of(in, {});
  AttentionOutputs result{Tensor::empty({dims.batch, dims.seq, dims.heads_out, dims.value_dim}),
                          Tensor::empty({dims.batch, dims.heads_out, dims.maps, dims.seq, 2})};
  RoundedInputs& rounded = result.rounded;
  if (in.precision != Precision::full)
    rounded = {RoundedHeads(in.q), RoundedHeads(in.k), RoundedHeads(in.v)};
  const HeadOperand q(in.q, rounded.q), k(in.k, rounded.k), v(in.v, rounded.v);
  ForwardCall call{in, dims, tile::pairs_of(in.precision), q, k, v.transposable(), result};
  Tensor scratch = Tensor::empty({num_threads(), scratch_size(dims)});
  const Index heads = dims.batch * dims.heads_out;
  const Selections selections(in, rounded);
  parallel_for(dims.tasks() * heads, [&](Index task) {
    const Index b = task / dims.tasks() / dims.heads_out,
                head = task / dims.tasks() % dims.heads_out;
    // The longest blocks of a head, at the end of the sequence, start first.
    for_each_block(
        in, dims, selections, b, head, dims.tasks() - 1 - task % dims.tasks(),
        [&](const Block& block) { forward_block(call, block, scratch.row(thread_index())); });
  });
  return result;
}

std::vector<real> largest_logits(const HeadMapping& mapping, const Tensor& softmax_stats) {
  const Shape& s = softmax_stats.shape();  // (B, output heads, M, T, 2)
  std::vector<real> largest(mapping.query_heads, -std::numeric_limits<real>::infinity());
  serial([&] {
    for (Index row = 0; row < s[0] * s[1] * s[2]; ++row) {
      const Index head = row / s[2] % s[1], map = row % s[2];
      real& of = largest[mapping.outputs[head].query[map]];
      const SoftmaxStats* stats =
          &softmax_stats_at(softmax_stats, row / (s[1] * s[2]), head, map, 0);
      for (Index t = 0; t < s[3]; ++t) of = std::max(of, stats[t].max);
    }
  });
  return largest;
}

}  // namespace difftape
