// Each column of B is read once, as a row of its transpose, and multiplied with all rows of A.
#include "core/few_rows.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/parallel.h"
#include "core/simd.h"

namespace difftape {

namespace {

constexpr Index kMostRows = 8;
constexpr Index kGrain = 1 << 16;  ///< elements of B in one block

struct FewRowsCall {
  const real* start;
  const Operand &a, &b;
  real* c;
  Index c_stride;
};

/// Computes elements [begin, begin + count) of every row of C. With few rows each has several
/// independent sums, which hide latency.
template <Index rows>
void multiply_columns(const FewRowsCall& call, Index begin, Index count) {
  constexpr Index kChains = rows == 1 ? 4 : rows <= 3 ? 2 : 1;
  const Index inner = call.a.cols, stride = call.a.stride;
  for (Index column = begin; column < begin + count; ++column) {
    const real* right = call.b.data + column * call.b.stride;
    std::array<std::array<Simd, kChains>, rows> sums{};
    Index k = 0;
    for (; k + kChains * kSimdWidth <= inner; k += kChains * kSimdWidth) {
      for (Index chain = 0; chain < kChains; ++chain) {
        const Index at = k + chain * kSimdWidth;
        const Simd of_b = load(right + at);
        for (Index i = 0; i < rows; ++i)
          sums[i][chain] = fma(of_b, load(call.a.data + i * stride + at), sums[i][chain]);
      }
    }
    for (Index i = 0; i < rows; ++i) {
      Simd total = sums[i][0];
      for (Index chain = 1; chain < kChains; ++chain) total += sums[i][chain];
      real dot = sum(total);
      for (Index rest = k; rest < inner; ++rest)
        dot += right[rest] * call.a.data[i * stride + rest];
      const Index at = i * call.c_stride + column;
      call.c[at] = call.start == nullptr ? dot : call.start[at] + dot;
    }
  }
}

using Multiply = void (*)(const FewRowsCall&, Index, Index);

constexpr auto kByRows = []<Index... rows>(std::integer_sequence<Index, rows...>) {
  return std::array<Multiply, kMostRows>{multiply_columns<rows + 1>...};
}
(std::make_integer_sequence<Index, kMostRows>());

}  // namespace

bool are_few_rows(const Operand& a, const Operand& b) {
  return a.rows >= 1 && a.rows <= kMostRows && !a.transposed && b.transposed;
}

void multiply_few_rows(const real* start, const Operand& a, const Operand& b, real* c,
                       Index c_stride) {
  const FewRowsCall call{start, a, b, c, c_stride};
  const Multiply multiply = kByRows[a.rows - 1];
  const Index columns = a.cols >= kGrain ? 1 : kGrain / std::max<Index>(a.cols, 1);
  parallel_ranges(b.cols, columns, [&](Index begin, Index count) { multiply(call, begin, count); });
}

}  // namespace difftape
