#pragma once
// Shared by the forward and the backward kernel. A block is 64 queries (32 in double) of one output
// head and the runs of keys that they read, cut into tiles. Scores have one row per key:
//
//      queries   0.. 16.. 32.. 48..63    A vector register (Lanes) holds one key of 16 queries:
//              +----+----+----+----+     nothing is summed within a register.
//    first_key |....|....|....|....|
//       ..     |....|....|....|....|     Tile of up to 64 keys that all queries may see.
//              +----+----+----+----+
//       begin  |\...|....|....|....|     Diagonal tile: the keys of the first 32 queries. A blank
//              |    |\...|....|....|     is -inf as a score, 0 as a weight.
//              +----+----+----+----+
//                        |\...|....|     Diagonal tile of the other 32: no product is made for
//                        |    |\...|     the queries before, which see none of its keys.
//                        +----+----+

#include <algorithm>
#include <array>

#include "core/attention/attention.h"
#include "core/attention/lanes.h"
#include "core/attention/selection.h"
#include "core/parallel.h"

namespace difftape::attention {

/// Sizes of one call.
struct Dims {
  Index batch, seq, head_dim, value_dim, heads_out, maps;
  Index keys;        ///< rows of the score buffers: the most keys of a block
  Index block_rows;  ///< queries of a block that leaves out keys, at most kBlockRows
  /// Returns the number of tasks that a head is cut into, kBlockRows queries each.
  Index tasks() const { return ceil_div(seq, kBlockRows); }
  Index map_size() const { return keys * kBlockRows; }
};
/// Throws ShapeError if the operands do not fit the mapping or each other. Reads rounded ones if
/// they are allocated.
Dims dims_of(const AttentionInputs& in, const RoundedInputs& rounded);

/// Rows of one head of one sequence in a (B, T, heads, width) tensor.
struct Head {
  const real* data;
  Index stride;  ///< between tokens
  const real* row(Index t) const { return data + t * stride; }
};
Head head_of(const Tensor& x, Index b, Index head);
/// Returns the same position in a tensor that is written to.
real* head_data(Tensor& x, Index b, Index head, Index t);

/// Returns lambda of one token and output head, 0 if there is one map.
real lambda_at(const AttentionInputs& in, Index b, Index t, Index head);

/// The statistics from which backward recomputes a row: its largest score (or sink) and the
/// reciprocal of its sum of exp(score - max), including the sink.
struct SoftmaxStats {
  real max, inverse_sum;
};
/// Returns the row statistics of one token in one map.
SoftmaxStats& softmax_stats_at(Tensor& stats, Index b, Index head, Index map, Index t);
const SoftmaxStats& softmax_stats_at(const Tensor& stats, Index b, Index head, Index map, Index t);

/// The extra logit of a row, which takes part in its maximum and sum.
struct Sink {
  bool present = false;
  real logit = 0;
  /// Returns the probability that the sink takes from the keys, 0 if absent.
  real probability(const SoftmaxStats& stats) const;
};
Sink sink_of(const AttentionInputs& in, Index query_head);

/// The chosen keys of each sequence and group of heads in one call.
class Selections {
 public:
  Selections(AttentionInputs in, const RoundedInputs& rounded);
  const KeySelection& of(Index b, Index head) const { return all_[b * groups_ + group_of_[head]]; }

 private:
  std::vector<Index> group_of_;
  Index groups_;
  std::vector<KeySelection> all_;
};

/// Queries [begin, begin + rows) of one output head and all keys that any of them reads. Their
/// score buffers have kBlockRows columns, one per query, and the keys of the runs as rows.
struct Block {
  Index b, head, begin, rows;
  Index seq;  ///< tokens of the sequence
  /// The keys before `begin`. Dense attention has one run, which starts at a multiple of kStepRows,
  /// so that products have few shapes.
  KeyRuns runs;
};
Block make_block(const AttentionInputs& in, const Dims& dims, const Selections& selections, Index b,
                 Index head, Index begin, Index rows);
/// Calls f(block) for the blocks of one task of a head. A block has kBlockRows queries if they read
/// all keys, so that sums are in the order of dense attention; else its queries share a choice.
template <class F>
void for_each_block(const AttentionInputs& in, const Dims& dims, const Selections& selections,
                    Index b, Index head, Index task, F&& f) {
  const Index first = task * kBlockRows, end = std::min(dims.seq, first + kBlockRows);
  bool all = true;
  for (Index t = first; t < end && dims.block_rows < kBlockRows; t += dims.block_rows)
    all = all && selections.of(b, head).reads_all(t);
  const Index rows = all ? kBlockRows : dims.block_rows;
  for (Index begin = first; begin < end; begin += rows)
    f(make_block(in, dims, selections, b, head, begin, rows));
}

/// Queries in one step of the diagonal: a product stops at the last key that the step sees.
inline constexpr Index kStepRows = kBlockRows / 2;
/// Most keys of a tile: its scores stay in the L1 cache from one product to the next.
inline constexpr Index kTileKeys = 64;

/// Some keys of a block and the queries that see them: all queries or, on the diagonal, those from
/// the step of the keys on.
struct Tile {
  Index key, keys;  ///< rows [key, key + keys) of the score buffers
  Index position;   ///< of the first key in its sequence
  Index query;      ///< columns [query, rows of the block)
  bool diagonal;
  bool first;                            ///< of its block; has all queries
  std::array<bool, 2> maps{true, true};  ///< the maps that read it
  /// Returns the position of its first score in a buffer.
  Index offset() const { return key * kBlockRows + query; }
};
/// Calls f(tile) for all keys of a block.
template <class F>
void for_each_tile(const Block& block, F&& f) {
  Index key = 0;
  for (const KeyRun& run : block.runs) {
    for (Index i = 0, keys = 0; i < run.count; i += keys, key += keys) {
      keys = std::min(kTileKeys, run.count - i);
      f(Tile{key, keys, run.first + i, 0, false, key == 0, run.maps});
    }
  }
  for (Index i = 0; i < block.rows; i += kStepRows) {
    f(Tile{key + i, std::min(kStepRows, block.rows - i), block.begin + i, i, true, key + i == 0});
  }
}

/// kSimdWidth neighboring queries of a block. Lanes beyond its last query hold values that reach no
/// result; those of weights are finite, since rounded products multiply one of them by 0.
struct Lanes {
  Index first, count;  ///< queries [first, first + count) of the block
  Index keys;          ///< of the tile that any of them can see
  Index number() const { return first / kSimdWidth; }
  Index offset(const Tile& tile) const { return first - tile.query; }
};
/// Calls f(lanes) for all queries of a tile.
template <class F>
void for_each_lanes(const Block& block, const Tile& tile, F&& f) {
  for (Index i = tile.query; i < block.rows; i += kSimdWidth) {
    const Index count = std::min(kSimdWidth, block.rows - i), seen = i + count - tile.query;
    f(Lanes{i, count, tile.diagonal ? std::min(seen, tile.keys) : tile.keys});
  }
}
/// Calls f(lanes) for all queries of a block, without keys.
template <class F>
void for_each_lanes(const Block& block, F&& f) {
  for (Index i = 0; i < block.rows; i += kSimdWidth)
    f(Lanes{i, std::min(kSimdWidth, block.rows - i), 0});
}
/// One value per query of a block, in vectors indexed by Lanes::number().
using PerQuery = std::array<Simd, kBlockRows / kSimdWidth>;

/// Returns lambda of each query of a block.
PerQuery lambda_of(const AttentionInputs& in, const Block& block);
/// Writes the row statistics of some lanes in one map.
void store_stats(const LaneStats& lane_stats, const Block& block, const Lanes& lanes, Index map,
                 Tensor& stats);

/// Computes the scores of lanes in a tile from the products q k^T: caps them and puts -inf on keys
/// that a query does not see or the map does not read. Writes the slopes of the cap, laid out like
/// the scores, unless null.
void cap_and_mask(const AttentionInputs& in, const Block& block, const Tile& tile, Index map,
                  const Lanes& lanes, real* scores, real* slopes);

/// Writes zeros as the weights of lanes on keys of a tile that none of them sees.
void finish_weights(const Tile& tile, const Lanes& lanes, real* weights);

/// Elements of a panel for a head of `width`.
constexpr Index panel_size(Index width) { return width * kBlockRows; }
/// Writes rows of a head transposed and times `scale` to a panel (width x kBlockRows).
void pack_panel(const Operand& rows, double scale, real* panel);
/// Writes the columns of a panel as the rows of a head, `to_stride` apart.
void store_panel(const real* panel, Index width, const Block& block, real* to, Index to_stride);

}  // namespace difftape::attention
