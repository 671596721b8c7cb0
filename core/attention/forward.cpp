// For a block of queries, whole rows of scores of both maps are held in scratch, normalised,
// subtracted, and multiplied by V once. Blocks of keys that no query of the block sees (later ones,
// those before the window or before the document) are skipped; other masked scores are -inf and
// become exact zeros. A soft cap comes before the mask. A sink joins maximum and sum of its row and
// has no column.
#include <algorithm>
#include <limits>

#include "core/attention/blocks.h"
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
  Dims dims;
  TransposedHeads keys;
  AttentionOutputs& result;
};

/// Row i of each map, `scores` apart: numerators of its softmax, statistics saved.
std::array<SoftmaxStats, 2> softmax_rows(Call& call, const OutputHead& output, const Block& block,
                                         Index i, const std::array<real*, 2>& scores) {
  std::array<SoftmaxStats, 2> stats{};
  for (size_t map = 0; map < static_cast<size_t>(call.dims.maps); ++map) {
    if (call.in.logit_softcap > 0) {
      softcap(scores[map], block.width(i), static_cast<real>(call.in.logit_softcap));
    }
    mask(call.in, block, i, scores[map]);
    stats[map] =
        softmax_numerators(scores[map], block.width(i), sink_of(call.in, output.query[map]));
    softmax_stats_at(call.result.softmax_stats, block.b, block.head, static_cast<Index>(map),
                     block.begin + i) = stats[map];
  }
  return stats;
}

/// Row i of the weights of V: of one product, A1 - lambda A2; of two, A1 and -lambda A2.
void combine_maps(const Call& call, const Block& block, Index i, const std::array<real*, 2>& scores,
                  const std::array<SoftmaxStats, 2>& stats, bool shared_value) {
  const Index width = block.width(i);
  const real lambda = lambda_at(call.in, block.b, block.begin + i, block.head);
  if (call.dims.maps == 2 && shared_value) {
    subtract_maps(scores[0], scores[1], width, stats[0], stats[1], lambda);
  } else {
    normalise(scores[0], width, stats[0], 1);
    if (call.dims.maps == 2) normalise(scores[1], width, stats[1], -lambda);
  }
}

void forward_block(Call& call, const Block& block, real* scratch) {
  const Dims& dims = call.dims;
  const OutputHead& output = call.mapping.outputs[static_cast<size_t>(block.head)];
  const std::array<real*, 2> maps{scratch, scratch + dims.block * dims.stride};
  for (size_t map = 0; map < static_cast<size_t>(dims.maps); ++map) {
    multiply_panels(
        head_of(call.in.q, block.b, output.query[map]).rows(block.begin, block.rows, dims.head_dim),
        call.keys.panels(block.b, output.key[map]), block, maps[map], dims.stride);
  }
  const bool shared_value = dims.maps == 1 || output.value[0] == output.value[1];
  const size_t products = shared_value ? 1 : 2;
  for (Index i = 0; i < block.rows; ++i) {
    const std::array<real*, 2> rows{maps[0] + i * dims.stride, maps[1] + i * dims.stride};
    combine_maps(call, block, i, rows, softmax_rows(call, output, block, i, rows), shared_value);
    for (size_t map = 0; map < products; ++map) {
      if (call.in.round_maps) round_bf16(rows[map], block.width(i));
      zero_tail(block, i, rows[map]);
    }
  }
  for (size_t map = 0; map < products; ++map) {
    multiply_rows(maps[map], dims.stride, block, head_of(call.in.v, block.b, output.value[map]),
                  dims.value_dim, head_data(call.result.out, block.b, block.head, block.begin),
                  dims.heads_out * dims.value_dim, map == 0 ? Accumulate::no : Accumulate::yes);
  }
}

}  // namespace

AttentionOutputs attention_forward(const HeadMapping& mapping, const AttentionInputs& in) {
  const Dims dims = dims_of(mapping, in);
  AttentionOutputs result{Tensor::empty({dims.batch, dims.seq, dims.heads_out, dims.value_dim}),
                          Tensor::empty({dims.batch, dims.heads_out, dims.maps, dims.seq, 2})};
  Call call{mapping, in, dims, TransposedHeads(in.k, mapping.key_heads, dims.head_dim, in.scale),
            result};
  const Index scratch_size = dims.maps * dims.block * dims.stride;
  Tensor scratch = Tensor::empty({num_threads(), scratch_size});
  const Index heads = dims.batch * dims.heads_out;
  parallel_for(dims.blocks() * heads, [&](Index task) {
    // The longest blocks, those at the end of the sequence, start first.
    const Index begin = (dims.blocks() - 1 - task / heads) * dims.block;
    const Index b = task % heads / dims.heads_out, head = task % dims.heads_out;
    forward_block(call, make_block(in, dims, b, head, begin),
                  scratch.data() + thread_index() * scratch_size);
  });
  return result;
}

std::vector<real> largest_logits(const HeadMapping& mapping, const Tensor& softmax_stats) {
  const Shape& s = softmax_stats.shape();  // (B, output heads, M, T, 2)
  std::vector<real> largest(static_cast<size_t>(mapping.query_heads),
                            -std::numeric_limits<real>::infinity());
  serial([&] {
    for (Index row = 0; row < s[0] * s[1] * s[2]; ++row) {
      const OutputHead& output = mapping.outputs[static_cast<size_t>(row / s[2] % s[1])];
      real& of = largest[static_cast<size_t>(output.query[static_cast<size_t>(row % s[2])])];
      const SoftmaxStats* stats =
          &softmax_stats_at(softmax_stats, row / (s[1] * s[2]), row / s[2] % s[1], row % s[2], 0);
      for (Index t = 0; t < s[3]; ++t) of = std::max(of, stats[t].max);
    }
  });
  return largest;
}

}  // namespace difftape
