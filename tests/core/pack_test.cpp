#include "core/pack.h"

#include <numeric>

#include "tests/support/test.h"

namespace difftape {
namespace {

TEST(Pack, transposes_whole_and_partial_squares_of_strided_matrices) {
  for (const auto& [rows, cols] :
       {std::array<Index, 2>{1, 1}, {3, 40}, {40, 3}, {16, 16}, {8, 32}, {17, 33}, {48, 31}}) {
    const Index in_stride = cols + 3, out_stride = rows + 5;
    std::vector<real> in(rows * in_stride), out(cols * out_stride, -1);
    std::iota(in.begin(), in.end(), real{0});
    pack::transpose(in.data(), in_stride, rows, cols, out.data(), out_stride);
    for (Index y = 0; y < cols; ++y) {
      for (Index x = 0; x < out_stride; ++x) {
        const real expected = x < rows ? in[x * in_stride + y] : -1;
        ASSERT_EQ(out[y * out_stride + x], expected) << rows << " x " << cols;
      }
    }
  }
}

}  // namespace
}  // namespace difftape
