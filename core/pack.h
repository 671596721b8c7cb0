#pragma once
// Operand layouts for the tiles of a product: panels of the right operand, blocks of rows of the
// left one. Elements are `real` if `pairs` is null. Else they are bfloat16, rounded by `pairs`: the
// rows of a left operand have an even length, and a panel holds words of neighboring rows, row i
// and i + 1 in row i / 2.

#include "core/gemm.h"
#include "core/tile.h"

namespace difftape::pack {

/// Position of element (row, col) of a view.
inline Index position(const Operand& m, Index row, Index col) {
  return m.transposed ? col * m.stride + row : row * m.stride + col;
}

using tile::Pairs;

constexpr Index element_size(Pairs pairs) { return pairs != nullptr ? 2 : sizeof(real); }
/// Returns the rows of a panel for an inner size of k.
constexpr Index padded_inner(Pairs pairs, Index k) { return pairs != nullptr ? round_up(k, 2) : k; }

/// Returns the bytes of all panels of a k x n operand.
Index panel_bytes(Pairs pairs, Index k, Index n);

/// Packs columns [first, first + kPanel) of b into one panel, zero-filled beyond its columns and
/// rows.
void panel(Pairs pairs, const Operand& b, Index first, void* out);

/// out (cols x rows, rows `out_stride` apart) := in (rows x cols) transposed.
void transpose(const real* in, Index in_stride, Index rows, Index cols, real* out,
               Index out_stride);
/// The same for words of two bfloat16s, `in` being an array of either.
void transpose_words(const void* in, Index in_stride, Index rows, Index cols, std::uint32_t* out,
                     Index out_stride);

/// Longest rows, in elements, that tiles read without packing: beyond, each element of a column is
/// on a different page.
inline constexpr Index kNearRows = 400;

/// The right operand as tiles read it: packed panels, or the matrix itself.
struct Right {
  const void* data;
  Index stride;        ///< between rows of a panel, in elements
  Index panel_stride;  ///< between panels, in elements
  Index element_size;  ///< in bytes
  const void* at(Index panel, Index k) const {
    return static_cast<const char*>(data) + (panel * panel_stride + k * stride) * element_size;
  }
};

/// Returns true if tiles read `b` in place: packing pays off only if the left operand has many
/// rows.
inline bool right_lies_well(Pairs pairs, const Operand& b, Index left_rows) {
  constexpr Index kMany = 512;
  return pairs == nullptr && !b.transposed && b.stride <= kNearRows && left_rows <= kMany;
}

/// A block of the left operand as tiles read it.
struct Left {
  const void* data;
  Index stride;  ///< in elements
  bool transposed;
};

/// Returns true if tiles can read all of `a` in place.
inline bool left_lies_well(Pairs pairs, const Operand& a) {
  return pairs == nullptr && (!a.transposed || a.stride <= kNearRows);
}
/// Returns columns [k, k + count) of all rows of `a`: in place if tiles can read them, else copied
/// to `scratch` of left_bytes(pairs, rows, count). bfloat16 is read in place if its rows need no
/// padding and begin at whole words.
Left left(Pairs pairs, const Operand& a, Index k, Index count, void* scratch);
Index left_bytes(Pairs pairs, Index rows, Index count);

}  // namespace difftape::pack
