#include "core/pack.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
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
auto with_elements(const Operand& m, F&& f) {
  return m.bf16 != nullptr ? f(m.bf16) : f(m.data);
}

real number(real x) { return x; }
real number(std::uint16_t bits) { return from_bf16_bits(bits); }

/// Copies numbers, and rounds them to bfloat16 if asked.
void copy(const real* from, Index n, bool round, real* to) {
  std::copy_n(from, n, to);
  if (round) round_bf16(to, n);
}
void copy(const std::uint16_t* from, Index n, bool /*round*/, real* to) {
  std::transform(from, from + n, to, from_bf16_bits);
}

/// Packs a panel of a row-major operand.
template <class T>
void panel_of_rows(const T* data, const Operand& b, bool round, Index first, Index width,
                   real* out) {
  for (Index k = 0; k < b.rows; ++k) {
    real* to = out + k * kPanel;
    copy(data + k * b.stride + first, width, round, to);
    std::fill_n(to + width, kPanel - width, real{0});
  }
}

/// Packs a panel of a transposed operand, whose stored rows become columns.
template <class T>
void panel_of_columns(const T* data, const Operand& b, bool round, Index first, Index width,
                      real* out) {
  for (Index k = 0; k < b.rows; k += kSquare) {
    const Index height = std::min(kSquare, b.rows - k);
    for (Index j = 0; j < kPanel; j += kSquare) {
      const T* from = data + (first + j) * b.stride + k;
      real* to = out + k * kPanel + j;
      if constexpr (std::is_same_v<T, real>) {
        if (height == kSquare && j + kSquare <= width) {
          transpose_square(from, b.stride, to, kPanel);
          continue;
        }
      }
      for (Index i = 0; i < height; ++i) {
        for (Index column = 0; column < kSquare; ++column) {
          to[i * kPanel + column] =
              j + column < width ? number(from[column * b.stride + i]) : real{0};
        }
      }
    }
    if (round) round_bf16(out + k * kPanel, height * kPanel);
  }
}

const tile::PairBackend& rounding() {
  static const tile::PairBackend* const units = tile::avx512_bf16_pairs();
  return units != nullptr ? *units : *tile::portable_pairs();
}
constexpr Index whole_vectors(Index n) { return n / kSimdWidth * kSimdWidth; }

/// Joins two rows element by element into words of two bfloat16s; `odd` may be null for zeros.
void pair_of_rows(const real* even, const real* odd, Index width, std::uint32_t* out) {
  const Index whole = odd != nullptr ? whole_vectors(width) : 0;
  rounding().round(even, odd, whole, out, nullptr, nullptr);
  for (Index j = whole; j < width; ++j) out[j] = bf16_pair(even[j], odd != nullptr ? odd[j] : 0);
}
void pair_of_rows(const std::uint16_t* even, const std::uint16_t* odd, Index width,
                  std::uint32_t* out) {
  join_bf16(even, odd, width, out);
}

/// Rounds two rows, which may be one.
void round_rows(const real* first, const real* second, Index n, std::uint16_t* to_first,
                std::uint16_t* to_second) {
  const Index whole = whole_vectors(n);
  rounding().round(first, second, whole, nullptr, to_first, to_second);
  for (Index j = whole; j < n; ++j) {
    to_first[j] = bf16_bits(first[j]);
    to_second[j] = bf16_bits(second[j]);
  }
}
void round_rows(const std::uint16_t* first, const std::uint16_t* second, Index n,
                std::uint16_t* to_first, std::uint16_t* to_second) {
  std::copy_n(first, n, to_first);
  std::copy_n(second, n, to_second);
}

/// Packs a panel in pairs of a transposed operand, whose stored rows hold the pairs.
template <class T>
void bf16_panel_of_columns(const T* data, const Operand& b, Index first, Index width,
                           std::uint32_t* out) {
  const Index pairs = padded_inner(Format::bf16, b.rows) / 2;
  for (Index p = 0; p < pairs; p += kSquare) {
    const Index count = std::clamp(b.rows - 2 * p, Index{0}, 2 * kSquare);
    const Index words = std::min(kSquare, pairs - p);
    for (Index j = 0; j < kPanel; j += kSquare) {
      std::uint16_t bits[2 * kSquare * kSquare] = {};
      const Index columns = std::clamp(width - j, Index{0}, kSquare);
      for (Index column = 0; column < columns; column += 2) {
        const Index next = std::min(column + 1, columns - 1);
        const auto row = [&](Index of) { return data + (first + j + of) * b.stride + 2 * p; };
        round_rows(row(column), row(next), count, bits + column * 2 * kSquare,
                   bits + next * 2 * kSquare);
      }
      transpose_words(bits, kSquare, kSquare, words, out + p * kPanel + j, kPanel);
    }
  }
}

template <class T>
void bf16_panel_of_rows(const T* data, const Operand& b, Index first, Index width,
                        std::uint32_t* out) {
  const Index pairs = padded_inner(Format::bf16, b.rows) / 2;
  for (Index p = 0; p < pairs; ++p) {
    std::fill_n(out + p * kPanel, kPanel, 0u);
    const T* even = data + 2 * p * b.stride + first;
    if (2 * p < b.rows)
      pair_of_rows(even, 2 * p + 1 < b.rows ? even + b.stride : nullptr, width, out + p * kPanel);
  }
}

template <class T>
void bf16_rows(const T* data, const Operand& a, Index k, Index count, Index stride,
               std::uint16_t* out) {
  for (Index i = 0; i < a.rows; i += 2) {
    const Index next = std::min(i + 1, a.rows - 1);
    round_rows(data + i * a.stride + k, data + next * a.stride + k, count, out + i * stride,
               out + next * stride);
    for (const Index row : {i, next})
      std::fill(out + row * stride + count, out + (row + 1) * stride, std::uint16_t{0});
  }
}

/// Packs the rows of a transposed operand: pairs along k are words, transposed in squares.
template <class T>
void bf16_columns(const T* data, const Operand& a, Index k, Index count, Index stride,
                  std::uint16_t* out) {
  auto* words = reinterpret_cast<std::uint32_t*>(out);
  const Index pairs = stride / 2;
  for (Index p = 0; p < pairs; p += kSquare) {
    for (Index i = 0; i < a.rows; i += kPanel) {
      const Index width = std::min(kPanel, a.rows - i), height = std::min(kSquare, pairs - p);
      std::uint32_t joined[kSquare * kPanel];
      for (Index y = 0; y < height; ++y) {
        const Index first = 2 * (p + y);
        const T* even = data + (k + first) * a.stride + i;
        if (first < count) {
          pair_of_rows(even, first + 1 < count ? even + a.stride : nullptr, width,
                       joined + y * kPanel);
        } else {
          std::fill_n(joined + y * kPanel, width, 0u);
        }
      }
      for (Index x = 0; x < width; x += kSquare) {
        transpose_words(joined + x, kPanel, height, std::min(kSquare, width - x),
                        words + (i + x) * pairs + p, pairs);
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

Index padded_inner(Format format, Index k) {
  return format == Format::bf16 ? round_up(k, tile::kBf16Inner) : k;
}

Index panel_bytes(Format format, Index k, Index n) {
  return round_up(n, kPanel) * padded_inner(format, k) * element_size(format);
}

void panel(Format format, const Operand& b, Index first, void* out) {
  const Index width = std::min(kPanel, b.cols - first);
  with_elements(b, [&](const auto* data) {
    if (format == Format::bf16) {
      auto* to = static_cast<std::uint32_t*>(out);
      b.transposed ? bf16_panel_of_columns(data, b, first, width, to)
                   : bf16_panel_of_rows(data, b, first, width, to);
    } else {
      const bool round = format == Format::rounded;
      auto* to = static_cast<real*>(out);
      b.transposed ? panel_of_columns(data, b, round, first, width, to)
                   : panel_of_rows(data, b, round, first, width, to);
    }
  });
}

Index left_bytes(Format format, Index rows, Index count) {
  return rows * padded_inner(format, count) * element_size(format);
}

Left left(Format format, const Operand& a, Index k, Index count, void* scratch) {
  const Index stride = padded_inner(format, count);
  if (format == Format::bf16) {
    if (a.bf16 != nullptr && !a.transposed && stride == count && (a.stride | k) % 2 == 0)
      return {a.bf16 + k, a.stride, false, format};
    with_elements(a, [&](const auto* data) {
      auto* out = static_cast<std::uint16_t*>(scratch);
      a.transposed ? bf16_columns(data, a, k, count, stride, out)
                   : bf16_rows(data, a, k, count, stride, out);
    });
    return {scratch, stride, false, format};
  }
  if (left_lies_well(format, a))
    return {a.data + position(a, 0, k), a.stride, a.transposed, format};
  // Copies stored rows one after the other, so that tiles of a transposed operand touch few pages.
  const Index stored_rows = a.transposed ? count : a.rows, width = a.transposed ? a.rows : count;
  const Index first = position(a, 0, k);
  auto* out = static_cast<real*>(scratch);
  with_elements(a, [&](const auto* data) {
    for (Index i = 0; i < stored_rows; ++i)
      copy(data + first + i * a.stride, width, format == Format::rounded, out + i * width);
  });
  return {scratch, width, a.transposed, format};
}

}  // namespace difftape::pack
