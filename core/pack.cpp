#include "core/pack.h"

#include <Eigen/Core>
#include <algorithm>
#include <type_traits>

#include "core/bf16.h"
#include "core/tile.h"

namespace difftape::pack {

namespace {

// GCC warns that the template argument loses its vector attributes; the size is asserted below.
#pragma GCC diagnostic ignored "-Wignored-attributes"

// Matrices are transposed in squares of one vector register a row.
using Packet = Eigen::internal::packet_traits<real>::type;
constexpr Index kSquare = Eigen::internal::packet_traits<real>::size;
static_assert(kPanel % kSquare == 0);

/// out (kSquare x kSquare, rows out_stride apart) := in transposed.
void transpose_square(const real* in, Index in_stride, real* out, Index out_stride) {
  Eigen::internal::PacketBlock<Packet, kSquare> block;
  for (Index i = 0; i < kSquare; ++i) {
    block.packet[i] = Eigen::internal::ploadu<Packet>(in + i * in_stride);
  }
  Eigen::internal::ptranspose(block);
  for (Index i = 0; i < kSquare; ++i) {
    Eigen::internal::pstoreu(out + i * out_stride, block.packet[i]);
  }
}

/// Calls f with the part as a constant, so that loops over elements know it.
template <class F>
void with_part(int part, F&& f) {
  switch (part) {
    case 0:
      return f(std::integral_constant<int, 0>());
    case 1:
      return f(std::integral_constant<int, 1>());
    default:
      return f(std::integral_constant<int, 2>());
  }
}

/// What an element of a plain operand becomes: itself, or one of its parts.
struct Itself {
  static real of(real x) { return x; }
};
template <int part>
struct Part {
  static real of(real x) { return bf16_part<part>(x); }
};

template <class Become>
void convert(real* x, Index n) {
  for (Index i = 0; i < n; ++i) x[i] = Become::of(x[i]);
}

/// Panel of a row-major operand.
template <class Become>
void panel_of_rows(const Operand& b, Index first, Index width, real* out) {
  for (Index k = 0; k < b.rows; ++k) {
    const real* from = b.data + k * b.stride + first;
    real* to = out + k * kPanel;
    for (Index j = 0; j < width; ++j) to[j] = Become::of(from[j]);
    std::fill_n(to + width, kPanel - width, real{0});
  }
}

/// Panel of a transposed operand: its stored rows become columns.
template <class Become>
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
        for (Index column = 0; column < kSquare; ++column) {
          to[i * kPanel + column] = j + column < width ? from[column * b.stride + i] : real{0};
        }
      }
    }
    convert<Become>(out + k * kPanel, height * kPanel);
  }
}

template <class Become>
void real_panel(const Operand& b, Index first, Index width, real* out) {
  b.transposed ? panel_of_columns<Become>(b, first, width, out)
               : panel_of_rows<Become>(b, first, width, out);
}

/// The parts of two numbers as neighbouring bfloat16s.
template <int part>
std::uint32_t pair(real first, real second) {
  return bf16_pair(bf16_rest<part>(first), bf16_rest<part>(second));
}

/// Rows k and k + 1 of a row-major operand, element by element: words of two bfloat16s.
template <int part>
void pair_of_rows(const Operand& m, Index k, Index first, Index width, std::uint32_t* out) {
  const real* even = m.data + k * m.stride + first;
  if (k + 1 < m.rows) {
    const real* odd = even + m.stride;
    for (Index j = 0; j < width; ++j) out[j] = pair<part>(even[j], odd[j]);
  } else {
    for (Index j = 0; j < width; ++j) out[j] = pair<part>(even[j], 0);
  }
}

/// Words (kSquare x kSquare, rows `stride` apart) := `in`, dense, transposed.
void transpose_words(const std::uint32_t* in, std::uint32_t* out, Index stride) {
  if constexpr (sizeof(real) == sizeof(std::uint32_t)) {  // moving bits, whatever they mean
    transpose_square(reinterpret_cast<const real*>(in), kSquare, reinterpret_cast<real*>(out),
                     stride);
  } else {
    for (Index i = 0; i < kSquare; ++i) {
      for (Index j = 0; j < kSquare; ++j) out[j * stride + i] = in[i * kSquare + j];
    }
  }
}

/// Panel in pairs of a transposed operand: the pairs lie together in its stored rows.
template <int part>
void bf16_panel_of_columns(const Operand& b, Index first, Index width, std::uint32_t* out) {
  const Index pairs = padded_inner(Format::bf16, b.rows) / 2;
  for (Index p = 0; p < pairs; p += kSquare) {
    for (Index j = 0; j < kPanel; j += kSquare) {
      std::uint32_t square[kSquare * kSquare] = {};
      for (Index column = 0; column < std::min(kSquare, width - j); ++column) {
        const real* from = b.data + (first + j + column) * b.stride + 2 * p;
        const Index count = std::min(2 * kSquare, b.rows - 2 * p);
        auto* words = square + column * kSquare;
        for (Index i = 0; i < count / 2; ++i) words[i] = pair<part>(from[2 * i], from[2 * i + 1]);
        if (count > 0 && count % 2 == 1) words[count / 2] = pair<part>(from[count - 1], 0);
      }
      transpose_words(square, out + p * kPanel + j, kPanel);
    }
  }
}

template <int part>
void bf16_panel_of_rows(const Operand& b, Index first, Index width, std::uint32_t* out) {
  const Index pairs = padded_inner(Format::bf16, b.rows) / 2;
  for (Index p = 0; p < pairs; ++p) {
    std::fill_n(out + p * kPanel, kPanel, 0u);
    if (2 * p < b.rows) pair_of_rows<part>(b, 2 * p, first, width, out + p * kPanel);
  }
}

template <int part>
void bf16_rows(const Operand& a, Index k, Index count, Index stride, std::uint16_t* out) {
  for (Index i = 0; i < a.rows; ++i) {
    const real* from = a.data + i * a.stride + k;
    std::uint16_t* to = out + i * stride;
    for (Index j = 0; j < count; ++j) to[j] = bf16_bits(bf16_rest<part>(from[j]));
    std::fill(to + count, to + stride, std::uint16_t{0});
  }
}

/// The rows of a transposed operand: pairs along k are words, whose squares are transposed.
template <int part>
void bf16_columns(const Operand& a, Index k, Index count, Index stride, std::uint16_t* out) {
  const Operand stored{a.data + k * a.stride, count, a.rows, a.stride};
  auto* words = reinterpret_cast<std::uint32_t*>(out);
  const Index pairs = stride / 2;
  for (Index p = 0; p < pairs; p += kSquare) {
    for (Index i = 0; i < a.rows; i += kSquare) {
      const Index width = std::min(kSquare, a.rows - i);
      std::uint32_t square[kSquare * kSquare] = {}, turned[kSquare * kSquare];
      for (Index y = 0; y < kSquare && 2 * (p + y) < count; ++y) {
        pair_of_rows<part>(stored, 2 * (p + y), i, width, square + y * kSquare);
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

Index padded_inner(Format format, Index k) {
  if (format != Format::bf16) return k;
  return round_up(k, tile::kBf16Inner);
}

Index panel_bytes(Format format, Index k, Index n) {
  return packed_size(padded_inner(format, k), n) * element_size(format);
}

void panel(Format format, int part, const Operand& b, Index first, void* out) {
  const Index width = std::min(kPanel, b.cols - first);
  if (format == Format::plain) return real_panel<Itself>(b, first, width, static_cast<real*>(out));
  with_part(part, [&](auto number) {
    constexpr int kPart = decltype(number)::value;
    if (format == Format::rounded)
      return real_panel<Part<kPart>>(b, first, width, static_cast<real*>(out));
    auto* words = static_cast<std::uint32_t*>(out);
    b.transposed ? bf16_panel_of_columns<kPart>(b, first, width, words)
                 : bf16_panel_of_rows<kPart>(b, first, width, words);
  });
}

Index left_bytes(Format format, Index rows, Index count) {
  return rows * padded_inner(format, count) * element_size(format);
}

Left left(Format format, int part, const Operand& a, Index k, Index count, void* scratch) {
  if (format == Format::bf16) {
    const Index stride = padded_inner(format, count);
    auto* out = static_cast<std::uint16_t*>(scratch);
    with_part(part, [&](auto number) {
      constexpr int kPart = decltype(number)::value;
      a.transposed ? bf16_columns<kPart>(a, k, count, stride, out)
                   : bf16_rows<kPart>(a, k, count, stride, out);
    });
    return {scratch, stride, false, format};
  }
  if (left_lies_well(format, a)) {
    return {element(a, 0, k), a.stride, a.transposed, format};
  }
  // Stored rows, one after the other: tiles of a transposed operand then touch few pages.
  const Index stored_rows = a.transposed ? count : a.rows, width = a.transposed ? a.rows : count;
  auto* out = static_cast<real*>(scratch);
  for (Index i = 0; i < stored_rows; ++i) {
    const real* from = a.transposed ? a.data + (k + i) * a.stride : a.data + i * a.stride + k;
    std::copy_n(from, width, out + i * width);
  }
  if (format == Format::rounded) {
    with_part(part, [&](auto number) {
      convert<Part<decltype(number)::value>>(out, stored_rows * width);
    });
  }
  return {scratch, width, a.transposed, format};
}

}  // namespace difftape::pack
