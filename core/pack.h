#pragma once
// Operand layouts for the tiles of a product: panels of the right operand, blocks of rows of the
// left one.

#include "core/gemm.h"

namespace difftape::pack {

/// Position of element (row, col) of a view.
inline Index position(const Operand& m, Index row, Index col) {
  return m.transposed ? col * m.stride + row : row * m.stride + col;
}

/// The elements of packed operands.
enum class Format {
  plain,    ///< `real`
  rounded,  ///< `real`, rounded to bfloat16
  bf16,     ///< bfloat16, the right operand in pairs (core/tile.h)
};
constexpr Format format_of(Precision precision) {
  return precision == Precision::full   ? Format::plain
         : precision == Precision::bf16 ? Format::bf16
                                        : Format::rounded;
}
constexpr Index element_size(Format format) { return format == Format::bf16 ? 2 : sizeof(real); }
/// Returns the rows of a panel for an inner size of k, padded for bfloat16 tiles.
Index padded_inner(Format format, Index k);

/// Returns the bytes of all panels of a k x n operand.
Index panel_bytes(Format format, Index k, Index n);

/// Packs columns [first, first + kPanel) of b into one panel, zero-filled beyond its columns and
/// rows.
void panel(Format format, const Operand& b, Index first, void* out);

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
  Index stride;        ///< between rows of a panel
  Index panel_stride;  ///< between panels
  Format format;
  const void* at(Index panel, Index k) const {
    return static_cast<const char*>(data) +
           (panel * panel_stride + k * stride) * element_size(format);
  }
};

/// Returns true if tiles read `b` in place: packing pays off only if the left operand has many
/// rows.
inline bool right_lies_well(Format format, const Operand& b, Index left_rows) {
  constexpr Index kMany = 512;
  return format == Format::plain && !b.transposed && b.stride <= kNearRows && left_rows <= kMany;
}

/// A block of the left operand as tiles read it.
struct Left {
  const void* data;
  Index stride;
  bool transposed;
  Format format;
  /// Row `row` of the block and inner element 0.
  const void* at(Index row) const {
    return static_cast<const char*>(data) +
           (transposed ? row : row * stride) * element_size(format);
  }
};

/// Returns true if tiles can read all of `a` in place.
inline bool left_lies_well(Format format, const Operand& a) {
  return format == Format::plain && (!a.transposed || a.stride <= kNearRows);
}
/// Returns columns [k, k + count) of all rows of `a`: in place if tiles can read them, else copied
/// to `scratch` of left_bytes(format, rows, count). bfloat16 is read in place if its rows need no
/// padding and begin at whole words.
Left left(Format format, const Operand& a, Index k, Index count, void* scratch);
Index left_bytes(Format format, Index rows, Index count);

}  // namespace difftape::pack
