#pragma once
// Shared by the forward and the backward kernel. A block is 64 queries (in double 32) of one output
// head and the keys that they see, cut into tiles. Scores lie one row per key:
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
#include "core/parallel.h"

namespace difftape::attention {

/// Sizes of one call.
struct Dims {
  Index batch, seq, head_dim, value_dim, heads_out, maps;
  Index keys;  ///< rows of the score buffers: the keys that a block can reach
  Index blocks() const { return ceil_div(seq, kBlockRows); }
  Index map_size() const { return keys * kBlockRows; }
};
/// Throws ShapeError if the operands do not fit the mapping or each other.
Dims dims_of(const AttentionInputs& in);

/// Rows of one head of one sequence in a (B, T, heads, width) tensor.
struct Head {
  const real* data;
  Index stride;  ///< between tokens
  const real* row(Index t) const { return data + t * stride; }
  Operand rows(Index begin, Index count, Index width) const {
    return {row(begin), count, width, stride, false};
  }
};
Head head_of(const Tensor& x, Index b, Index head);
/// The same position in a tensor that is written.
real* head_data(Tensor& x, Index b, Index head, Index t);

/// Returns lambda of one token and output head, 0 if there is none.
real lambda_at(const AttentionInputs& in, Index b, Index t, Index head);

/// The numbers with which backward computes a row again: its largest score (or sink), and the
/// reciprocal of its sum of exp(score - max), the sink included.
struct SoftmaxStats {
  real max, inverse_sum;
};
/// The row statistics of one token in one map.
SoftmaxStats& softmax_stats_at(Tensor& stats, Index b, Index head, Index map, Index t);
const SoftmaxStats& softmax_stats_at(const Tensor& stats, Index b, Index head, Index map, Index t);

/// The extra logit of a row: none, or one that takes part in max and sum.
struct Sink {
  bool present = false;
  real logit = 0;
  /// The probability it takes from the keys, 0 if absent.
  real probability(const SoftmaxStats& stats) const;
};
Sink sink_of(const AttentionInputs& in, Index query_head);

/// Queries [begin, begin + rows) of one output head and all keys that any of them sees. Their
/// scores lie in buffers of kBlockRows columns, one a query; row 0 is first_key.
struct Block {
  Index b, head, begin, rows;
  Index first_key;  ///< a multiple of kStepRows, so that products have few shapes
};
Block make_block(const AttentionInputs& in, const Dims& dims, Index b, Index head, Index begin);

/// Queries of a block whose products are cut at the last key that one of them sees.
inline constexpr Index kStepRows = kBlockRows / 2;
/// Keys of a block that are worked on together: the scores of a tile stay in the L1 cache from one
/// product to the next.
inline constexpr Index kTileKeys = 64;

/// Some keys of a block and the queries that see them: all of its queries or, on the diagonal,
/// those from the step on that is at the same place as the keys.
struct Tile {
  Index key, keys;  ///< rows [key, key + keys) of the score buffers
  Index query;      ///< columns [query, rows of the block)
  bool diagonal;
  bool first;  ///< of its block; it has all queries
  /// Position of its first score in a buffer.
  Index offset() const { return key * kBlockRows + query; }
};
/// Calls f(tile) for all keys of a block.
template <class F>
void for_each_tile(const Block& block, F&& f) {
  const Index diagonal = block.begin - block.first_key;
  for (Index key = 0; key < diagonal; key += kTileKeys)
    f(Tile{key, std::min(kTileKeys, diagonal - key), 0, false, key == 0});
  for (Index i = 0; i < block.rows; i += kStepRows)
    f(Tile{diagonal + i, std::min(kStepRows, block.rows - i), i, true, diagonal + i == 0});
}

/// kSimdWidth neighbouring queries of a block; past its last query lanes hold numbers that nothing
/// reads.
struct Lanes {
  Index first, count;  ///< queries [first, first + count) of the block
  Index keys;          ///< of the tile that one of them can see
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
/// One number of each query of a block, Lanes::number() naming its vector.
using PerQuery = std::array<Simd, kPanel / kSimdWidth>;

/// lambda of each lane.
Simd lambda_of(const AttentionInputs& in, const Block& block, const Lanes& lanes);
/// The statistics of each lane in one map, and where they are kept.
LaneStats load_stats(const Tensor& stats, const Block& block, const Lanes& lanes, Index map);
void store_stats(const LaneStats& lane_stats, const Block& block, const Lanes& lanes, Index map,
                 Tensor& stats);

/// Caps the scores of lanes in a tile as the inputs say, `slopes` (null: none) being laid out as
/// they are, and puts -inf on the keys that a query does not see.
void cap_and_mask(const AttentionInputs& in, const Block& block, const Tile& tile,
                  const Lanes& lanes, real* scores, real* slopes);

/// Makes the weights of lanes in a tile what products read: zeros on keys that none of them sees,
/// and bfloat16s if asked.
void finish_weights(const Tile& tile, const Lanes& lanes, bool round, real* weights);

/// Numbers that pack_queries needs for a head of `width`.
constexpr Index panel_size(Index width) { return width * kPanel; }
/// panel (width x kPanel) := rows of a head transposed, times `scale`: the right operand of
/// products with keys or values.
void pack_queries(const Operand& rows, double scale, real* panel);

/// scores (keys x queries of the tile) = rows of `keys` times a panel of the queries.
void multiply_panel(const Head& keys, Index width, const real* panel, const Block& block,
                    const Tile& tile, real* scores);

/// to (queries of the block x n) = or += weights^T (weights being keys x queries of the tile) times
/// rows of a head, as many as keys.
void multiply_rows(const real* weights, const Block& block, const Tile& tile, const Head& head,
                   Index n, real* to, Index to_stride, Accumulate accumulate);

}  // namespace difftape::attention
