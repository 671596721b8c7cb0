#pragma once
// The matmuls of attention, each between a block of queries and a tile of its keys. Operands are
// plain, or rounded to bfloat16 and multiplied in pairs of neighbors along the sum:
//
//   product                      left operand           right operand
//   scores, dA = K Q^T, V dO^T   rows of the head       panel of the queries (width x queries)
//   O, dQ = V^T W, K^T dS        the head, transposed   weights (keys x queries)
//   dV, dK = W dO, dS Q          weights                rows of the queries
//
// A panel has a column for each query, so products with it are fast for every width.

#include <memory>

#include "core/attention/blocks.h"
#include "core/attention/rounded.h"
#include "core/tile.h"

namespace difftape::attention {

using tile::Pairs;

/// Rows of one head of one sequence, plain or rounded.
struct HeadRows {
  Index width;
  const real* data = nullptr;  ///< row t starts at data + t * stride
  Index stride = 0;
  const std::uint32_t* words = nullptr;  ///< word i of row t has its elements 2 i and 2 i + 1
  const std::uint32_t* pairs = nullptr;  ///< word (t / 2, i) has element i of rows t and t + 1
  Index words_per_row() const { return ceil_div(width, 2); }
};

/// q, k, v or dO of one call.
class HeadOperand {
 public:
  /// Reads `rounded` if it is allocated, else x.
  HeadOperand(const Tensor& x, const RoundedHeads& rounded) : plain_(x), rounded_(rounded) {}
  /// Returns an operand whose heads are multiplied transposed, too.
  HeadOperand transposable() const;
  HeadRows rows_of(Index b, Index head) const;

 private:
  Tensor plain_;
  RoundedHeads rounded_;
  std::shared_ptr<std::uint32_t> pairs_;  // of RoundedHeads
};

/// Queries of one block, or their output gradients, as right operands.
struct QueryRows {
  real* panel;  ///< of panel_size(width)
  real* rows;   ///< of panel_size(width), without gaps; null: not needed
};
/// Packs the queries of a block. A plain panel is multiplied by `scale`; for a rounded one,
/// multiply_panel does that, since a scaled number would be rounded again.
void pack_queries(const HeadRows& from, const Block& block, double scale, const QueryRows& to);

/// Computes scores (keys x queries of the tile) = the keys of a tile times a panel, which was
/// packed with `scale`.
void multiply_panel(Pairs pairs, const HeadRows& keys, const real* panel, double scale,
                    const Block& block, const Tile& tile, real* scores);

/// Memory for the rounded weights of a tile.
struct RoundedTile {
  std::array<std::uint32_t, kTileKeys * kBlockRows / 2> rows, pairs;
};
/// Weights (keys x queries of a tile) as operands.
struct Weights {
  const real* values;
  const std::uint32_t* rows = nullptr;   ///< word i of a key has its queries 2 i and 2 i + 1
  const std::uint32_t* pairs = nullptr;  ///< word (key / 2, i) has query i of a key and the next
};
/// The products that weights are for.
enum class For { weights, rows, both };
/// Returns weights for multiply_weights, multiply_rows or both. Rounds them to `memory` unless
/// `pairs` is null.
Weights weights_of(Pairs pairs, const Block& block, const Tile& tile, const real* values, For use,
                   RoundedTile& memory);

/// Computes panel (width x queries of the tile) = or += (the rows of a head)^T times weights. The
/// head has to be transposable.
void multiply_weights(Pairs pairs, const HeadRows& head, const Weights& weights, const Block& block,
                      const Tile& tile, real* panel, Accumulate accumulate);

/// Computes c (keys of the tile x width) = or += weights times rows of the queries.
void multiply_rows(Pairs pairs, const Weights& weights, const Block& block, const Tile& tile,
                   const real* rows, Index width, real* c, Index c_stride, Accumulate accumulate);

}  // namespace difftape::attention
