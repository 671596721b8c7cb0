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

/// out (kSquare x kSquare, rows out_stride apart) := in transposed. If its loops are not unrolled,
/// the compiler copies half registers through memory, at a third of the speed.
void transpose_square(const void* in, Index in_stride, void* out, Index out_stride) {
  constexpr Index kSize = sizeof(real);
  const auto* from = static_cast<const char*>(in);
  auto* to = static_cast<char*>(out);
  Register rows[kSquare];
#pragma GCC unroll 16
  for (Index i = 0; i < kSquare; ++i)
    std::memcpy(&rows[i], from + i * in_stride * kSize, sizeof rows[i]);
  transpose_blocks<kSquare / 2>(rows);
#pragma GCC unroll 16
  for (Index i = 0; i < kSquare; ++i)
    std::memcpy(to + i * out_stride * kSize, &rows[i], sizeof rows[i]);
}

/// out (cols x rows) := in (rows x cols) transposed, elements of the size of T.
template <class T>
void transpose_any(const void* in, Index in_stride, Index rows, Index cols, T* out,
                   Index out_stride) {
  const auto* first = static_cast<const char*>(in);
  const auto at = [&](Index i, Index j) { return first + (i * in_stride + j) * Index{sizeof(T)}; };
  for (Index i = 0; i < rows; i += kSquare) {
    for (Index j = 0; j < cols; j += kSquare) {
      T* to = out + j * out_stride + i;
      if constexpr (sizeof(T) == sizeof(real)) {  // moves bits, whatever they mean
        if (i + kSquare <= rows && j + kSquare <= cols) {
          transpose_square(at(i, j), in_stride, to, out_stride);
          continue;
        }
      }
      for (Index y = 0; y < std::min(kSquare, cols - j); ++y) {
        for (Index x = 0; x < std::min(kSquare, rows - i); ++x)
          std::memcpy(to + y * out_stride + x, at(i + x, j + y), sizeof(T));
      }
    }
  }
}

/// Calls f with the elements of an operand, `real` or the bits of bfloat16.
template <class F>
void with_elements(const Operand& m, F&& f) {
  m.bf16 != nullptr ? f(m.bf16) : f(m.data);
}

/// Packs a panel of a row-major operand.
void panel_of_rows(const Operand& b, Index first, Index width, real* out) {
  for (Index k = 0; k < b.rows; ++k) {
    real* to = out + k * kPanel;
    std::copy_n(b.data + k * b.stride + first, width, to);
    std::fill_n(to + width, kPanel - width, real{0});
  }
}

/// Packs a panel of a transposed operand, whose stored rows become columns.
void panel_of_columns(const Operand& b, Index first, Index width, real* out) {
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
        for (Index column = 0; column < kSquare; ++column)
          to[i * kPanel + column] = j + column < width ? from[column * b.stride + i] : real{0};
      }
    }
  }
}

constexpr Index whole_vectors(Index n) { return n / kSimdWidth * kSimdWidth; }

/// Joins two rows element by element into words of two bfloat16s; `odd` may be null for zeros.
void pair_of_rows(Pairs pairs, const real* even, const real* odd, Index width, std::uint32_t* out) {
  const Index whole = odd != nullptr ? whole_vectors(width) : 0;
  pairs->round(even, odd, whole, out, nullptr, nullptr);
  for (Index j = whole; j < width; ++j) out[j] = bf16_pair(even[j], odd != nullptr ? odd[j] : 0);
}
void pair_of_rows(Pairs /*pairs*/, const std::uint16_t* even, const std::uint16_t* odd, Index width,
                  std::uint32_t* out) {
  join_bf16(even, odd, width, out);
}

/// Rounds two rows, which may be one.
void round_rows(Pairs pairs, const real* first, const real* second, Index n,
                std::uint16_t* to_first, std::uint16_t* to_second) {
  const Index whole = whole_vectors(n);
  pairs->round(first, second, whole, nullptr, to_first, to_second);
  for (Index j = whole; j < n; ++j) {
    to_first[j] = bf16_bits(first[j]);
    to_second[j] = bf16_bits(second[j]);
  }
}
void round_rows(Pairs /*pairs*/, const std::uint16_t* first, const std::uint16_t* second, Index n,
                std::uint16_t* to_first, std::uint16_t* to_second) {
  std::copy_n(first, n, to_first);
  std::copy_n(second, n, to_second);
}

/// Packs a panel in pairs of a transposed operand, whose stored rows hold the pairs.
template <class T>
void bf16_panel_of_columns(Pairs pairs, const T* data, const Operand& b, Index first, Index width,
                           std::uint32_t* out) {
  const Index words = ceil_div(b.rows, 2);
  for (Index p = 0; p < words; p += kSquare) {
    const Index count = std::min(b.rows - 2 * p, 2 * kSquare);
    const Index height = std::min(kSquare, words - p);
    for (Index j = 0; j < kPanel; j += kSquare) {
      std::uint16_t bits[2 * kSquare * kSquare] = {};
      const Index columns = std::clamp(width - j, Index{0}, kSquare);
      for (Index column = 0; column < columns; column += 2) {
        const Index next = std::min(column + 1, columns - 1);
        const auto row = [&](Index of) { return data + (first + j + of) * b.stride + 2 * p; };
        round_rows(pairs, row(column), row(next), count, bits + column * 2 * kSquare,
                   bits + next * 2 * kSquare);
      }
      transpose_words(bits, kSquare, kSquare, height, out + p * kPanel + j, kPanel);
    }
  }
}

template <class T>
void bf16_panel_of_rows(Pairs pairs, const T* data, const Operand& b, Index first, Index width,
                        std::uint32_t* out) {
  const Index words = ceil_div(b.rows, 2);
  for (Index p = 0; p < words; ++p, out += kPanel) {
    const T* even = data + 2 * p * b.stride + first;
    pair_of_rows(pairs, even, 2 * p + 1 < b.rows ? even + b.stride : nullptr, width, out);
    std::fill(out + width, out + kPanel, 0u);
  }
}

template <class T>
void bf16_rows(Pairs pairs, const T* data, const Operand& a, Index k, Index count, Index stride,
               std::uint16_t* out) {
  for (Index i = 0; i < a.rows; i += 2) {
    const Index next = std::min(i + 1, a.rows - 1);
    round_rows(pairs, data + i * a.stride + k, data + next * a.stride + k, count, out + i * stride,
               out + next * stride);
    for (const Index row : {i, next})
      std::fill(out + row * stride + count, out + (row + 1) * stride, std::uint16_t{0});
  }
}

/// Packs the rows of a transposed operand: pairs along k are words, transposed in squares.
template <class T>
void bf16_columns(Pairs pairs, const T* data, const Operand& a, Index k, Index count, Index stride,
                  std::uint16_t* out) {
  auto* words = reinterpret_cast<std::uint32_t*>(out);
  const Index row_words = stride / 2;
  for (Index p = 0; p < row_words; p += kSquare) {
    for (Index i = 0; i < a.rows; i += kPanel) {
      const Index width = std::min(kPanel, a.rows - i), height = std::min(kSquare, row_words - p);
      std::uint32_t joined[kSquare * kPanel];
      for (Index y = 0; y < height; ++y) {
        const Index first = 2 * (p + y);
        const T* even = data + (k + first) * a.stride + i;
        pair_of_rows(pairs, even, first + 1 < count ? even + a.stride : nullptr, width,
                     joined + y * kPanel);
      }
      for (Index x = 0; x < width; x += kSquare) {
        transpose_words(joined + x, kPanel, height, std::min(kSquare, width - x),
                        words + (i + x) * row_words + p, row_words);
      }
    }
  }
}

}  // namespace

void transpose(const real* in, Index in_stride, Index rows, Index cols, real* out,
               Index out_stride) {
  transpose_any<real>(in, in_stride, rows, cols, out, out_stride);
}
void transpose_words(const void* in, Index in_stride, Index rows, Index cols, std::uint32_t* out,
                     Index out_stride) {
  transpose_any<std::uint32_t>(in, in_stride, rows, cols, out, out_stride);
}

Index panel_bytes(Pairs pairs, Index k, Index n) {
  return round_up(n, kPanel) * padded_inner(pairs, k) * element_size(pairs);
}

void panel(Pairs pairs, const Operand& b, Index first, void* out) {
  const Index width = std::min(kPanel, b.cols - first);
  if (pairs == nullptr) {
    auto* to = static_cast<real*>(out);
    b.transposed ? panel_of_columns(b, first, width, to) : panel_of_rows(b, first, width, to);
    return;
  }
  with_elements(b, [&](const auto* data) {
    auto* to = static_cast<std::uint32_t*>(out);
    b.transposed ? bf16_panel_of_columns(pairs, data, b, first, width, to)
                 : bf16_panel_of_rows(pairs, data, b, first, width, to);
  });
}

Index left_bytes(Pairs pairs, Index rows, Index count) {
  return rows * padded_inner(pairs, count) * element_size(pairs);
}

Left left(Pairs pairs, const Operand& a, Index k, Index count, void* scratch) {
  if (pairs != nullptr) {
    const Index stride = padded_inner(pairs, count);
    if (a.bf16 != nullptr && !a.transposed && stride == count && (a.stride | k) % 2 == 0)
      return {a.bf16 + k, a.stride, false};
    with_elements(a, [&](const auto* data) {
      auto* out = static_cast<std::uint16_t*>(scratch);
      a.transposed ? bf16_columns(pairs, data, a, k, count, stride, out)
                   : bf16_rows(pairs, data, a, k, count, stride, out);
    });
    return {scratch, stride, false};
  }
  const real* first = a.data + position(a, 0, k);
  if (left_lies_well(pairs, a)) return {first, a.stride, a.transposed};
  // Copies stored rows one after the other, so that tiles of a transposed operand touch few pages.
  const Index stored_rows = a.transposed ? count : a.rows, width = a.transposed ? a.rows : count;
  auto* out = static_cast<real*>(scratch);
  for (Index i = 0; i < stored_rows; ++i) std::copy_n(first + i * a.stride, width, out + i * width);
  return {scratch, width, a.transposed};
}

}  // namespace difftape::pack
