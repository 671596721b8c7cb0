#include "core/pack.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/bf16.h"
#include "core/simd.h"
#include "core/tile.h"

namespace difftape::pack {

namespace {

// Matrices are transposed in squares with one vector register per row.
using Register = Simd::Register;
constexpr Index kSquare = detail::kLanes;
static_assert(kPanel % kSquare == 0);

/// Exchanges the lanes of `a` whose index has the bit `distance` with the lanes of `b` that are
/// `distance` before them.
template <size_t distance, size_t... lane>
DIFFTAPE_INLINE void exchange(Register& a, Register& b, std::index_sequence<lane...>) {
  const Register first = a;
  a = __builtin_shufflevector(
      first, b, static_cast<int>(lane & distance ? kSquare + lane - distance : lane)...);
  b = __builtin_shufflevector(
      first, b, static_cast<int>(lane & distance ? kSquare + lane : lane + distance)...);
}

/// Transposes 2 x 2 blocks of `distance` x `distance` elements, then the halves of each block.
template <size_t distance>
DIFFTAPE_INLINE void transpose_blocks(Register (&rows)[kSquare]) {
  if constexpr (distance > 0) {
    for (size_t i = 0; i < kSquare; ++i) {
      if (!(i & distance))
        exchange<distance>(rows[i], rows[i + distance], std::make_index_sequence<kSquare>());
    }
    transpose_blocks<distance / 2>(rows);
  }
}

/// out (kSquare x kSquare, rows out_stride apart) := in transposed.
void transpose_square(const real* in, Index in_stride, real* out, Index out_stride) {
  Register rows[kSquare];
  for (Index i = 0; i < kSquare; ++i) std::memcpy(&rows[i], in + i * in_stride, sizeof rows[i]);
  transpose_blocks<kSquare / 2>(rows);
  for (Index i = 0; i < kSquare; ++i) std::memcpy(out + i * out_stride, &rows[i], sizeof rows[i]);
}

/// Packs a panel of a row-major operand.
void panel_of_rows(const Operand& b, bool round, Index first, Index width, real* out) {
  for (Index k = 0; k < b.rows; ++k) {
    real* to = out + k * kPanel;
    std::copy_n(b.data + k * b.stride + first, width, to);
    std::fill_n(to + width, kPanel - width, real{0});
    if (round) round_bf16(to, width);
  }
}

/// Packs a panel of a transposed operand, whose stored rows become columns.
void panel_of_columns(const Operand& b, bool round, Index first, Index width, real* out) {
  for (Index k = 0; k < b.rows; k += kSquare) {
    const Index height = std::min(kSquare, b.rows - k);
    for (Index j = 0; j < kPanel; j += kSquare) {
      const real* from = b.data + (first + j) * b.stride + k;
      real* to = out + k * kPanel + j;
      if (height == kSquare && j + kSquare <= width) {
        transpose_square(from, b.stride, to, kPanel);
        continue;
      }
      for (Index i = 0; i < height; ++i) {
        for (Index column = 0; column < kSquare; ++column) {
          to[i * kPanel + column] = j + column < width ? from[column * b.stride + i] : real{0};
        }
      }
    }
    if (round) round_bf16(out + k * kPanel, height * kPanel);
  }
}

/// Joins rows k and k + 1 of a row-major operand element by element into words of two bfloat16s.
void pair_of_rows(const Operand& m, Index k, Index first, Index width, std::uint32_t* out) {
  const real* even = m.data + k * m.stride + first;
  if (k + 1 < m.rows) {
    const real* odd = even + m.stride;
    for (Index j = 0; j < width; ++j) out[j] = bf16_pair(even[j], odd[j]);
  } else {
    for (Index j = 0; j < width; ++j) out[j] = bf16_pair(even[j], 0);
  }
}

/// out (kSquare x kSquare words, rows `stride` apart) := `in`, dense, transposed.
void transpose_words(const std::uint32_t* in, std::uint32_t* out, Index stride) {
  if constexpr (sizeof(real) == sizeof(std::uint32_t)) {  // moves bits, whatever they mean
    transpose_square(reinterpret_cast<const real*>(in), kSquare, reinterpret_cast<real*>(out),
                     stride);
  } else {
    for (Index i = 0; i < kSquare; ++i) {
      for (Index j = 0; j < kSquare; ++j) out[j * stride + i] = in[i * kSquare + j];
    }
  }
}

/// Packs a panel in pairs of a transposed operand, whose stored rows hold the pairs.
void bf16_panel_of_columns(const Operand& b, Index first, Index width, std::uint32_t* out) {
  const Index pairs = padded_inner(Format::bf16, b.rows) / 2;
  for (Index p = 0; p < pairs; p += kSquare) {
    for (Index j = 0; j < kPanel; j += kSquare) {
      std::uint32_t square[kSquare * kSquare] = {};
      for (Index column = 0; column < std::min(kSquare, width - j); ++column) {
        const real* from = b.data + (first + j + column) * b.stride + 2 * p;
        const Index count = std::min(2 * kSquare, b.rows - 2 * p);
        auto* words = square + column * kSquare;
        for (Index i = 0; i < count / 2; ++i) words[i] = bf16_pair(from[2 * i], from[2 * i + 1]);
        if (count > 0 && count % 2 == 1) words[count / 2] = bf16_pair(from[count - 1], 0);
      }
      transpose_words(square, out + p * kPanel + j, kPanel);
    }
  }
}

void bf16_panel_of_rows(const Operand& b, Index first, Index width, std::uint32_t* out) {
  const Index pairs = padded_inner(Format::bf16, b.rows) / 2;
  for (Index p = 0; p < pairs; ++p) {
    std::fill_n(out + p * kPanel, kPanel, 0u);
    if (2 * p < b.rows) pair_of_rows(b, 2 * p, first, width, out + p * kPanel);
  }
}

void bf16_rows(const Operand& a, Index k, Index count, Index stride, std::uint16_t* out) {
  for (Index i = 0; i < a.rows; ++i) {
    const real* from = a.data + i * a.stride + k;
    std::uint16_t* to = out + i * stride;
    for (Index j = 0; j < count; ++j) to[j] = bf16_bits(from[j]);
    std::fill(to + count, to + stride, std::uint16_t{0});
  }
}

/// Packs the rows of a transposed operand: pairs along k are words, transposed in squares.
void bf16_columns(const Operand& a, Index k, Index count, Index stride, std::uint16_t* out) {
  const Operand stored{a.data + k * a.stride, count, a.rows, a.stride};
  auto* words = reinterpret_cast<std::uint32_t*>(out);
  const Index pairs = stride / 2;
  for (Index p = 0; p < pairs; p += kSquare) {
    for (Index i = 0; i < a.rows; i += kSquare) {
      const Index width = std::min(kSquare, a.rows - i);
      std::uint32_t square[kSquare * kSquare] = {}, turned[kSquare * kSquare];
      for (Index y = 0; y < kSquare && 2 * (p + y) < count; ++y) {
        pair_of_rows(stored, 2 * (p + y), i, width, square + y * kSquare);
      }
      transpose_words(square, turned, kSquare);
      for (Index x = 0; x < width; ++x) {
        std::copy_n(turned + x * kSquare, std::min(kSquare, pairs - p),
                    words + (i + x) * pairs + p);
      }
    }
  }
}

}  // namespace

void transpose(const real* in, Index in_stride, Index rows, Index cols, real* out,
               Index out_stride) {
  for (Index i = 0; i < rows; i += kSquare) {
    for (Index j = 0; j < cols; j += kSquare) {
      const real* from = in + i * in_stride + j;
      real* to = out + j * out_stride + i;
      if (i + kSquare <= rows && j + kSquare <= cols) {
        transpose_square(from, in_stride, to, out_stride);
        continue;
      }
      for (Index y = 0; y < std::min(kSquare, cols - j); ++y) {
        for (Index x = 0; x < std::min(kSquare, rows - i); ++x)
          to[y * out_stride + x] = from[x * in_stride + y];
      }
    }
  }
}

Index padded_inner(Format format, Index k) {
  return format == Format::bf16 ? round_up(k, tile::kBf16Inner) : k;
}

Index panel_bytes(Format format, Index k, Index n) {
  return round_up(n, kPanel) * padded_inner(format, k) * element_size(format);
}

void panel(Format format, const Operand& b, Index first, void* out) {
  const Index width = std::min(kPanel, b.cols - first);
  if (format == Format::bf16) {
    const auto pack = b.transposed ? bf16_panel_of_columns : bf16_panel_of_rows;
    pack(b, first, width, static_cast<std::uint32_t*>(out));
  } else {
    const auto pack = b.transposed ? panel_of_columns : panel_of_rows;
    pack(b, format == Format::rounded, first, width, static_cast<real*>(out));
  }
}

Index left_bytes(Format format, Index rows, Index count) {
  return rows * padded_inner(format, count) * element_size(format);
}

Left left(Format format, const Operand& a, Index k, Index count, void* scratch) {
  if (format == Format::bf16) {
    const Index stride = padded_inner(format, count);
    const auto pack = a.transposed ? bf16_columns : bf16_rows;
    pack(a, k, count, stride, static_cast<std::uint16_t*>(scratch));
    return {scratch, stride, false, format};
  }
  if (left_lies_well(format, a)) return {element(a, 0, k), a.stride, a.transposed, format};
  // Copies stored rows one after the other, so that tiles of a transposed operand touch few pages.
  const Index stored_rows = a.transposed ? count : a.rows, width = a.transposed ? a.rows : count;
  auto* out = static_cast<real*>(scratch);
  for (Index i = 0; i < stored_rows; ++i) {
    const real* from = a.transposed ? a.data + (k + i) * a.stride : a.data + i * a.stride + k;
    std::copy_n(from, width, out + i * width);
  }
  if (format == Format::rounded) round_bf16(out, stored_rows * width);
  return {scratch, width, a.transposed, format};
}

}  // namespace difftape::pack
