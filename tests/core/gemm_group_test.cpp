// Several products computed together, against the same products one by one.
#include "core/gemm.h"
#include "core/pool.h"
#include "tests/core/arithmetics.h"
#include "tests/support/tensors.h"
#include "tests/support/threads.h"

namespace difftape {
namespace {

class GemmGroup : public test::EveryArithmetic {};

/// Rows of x of each group times its matrix of w, by gemm_group or one gemm each.
Tensor grouped(const Tensor& x, const Tensor& w, const std::vector<Index>& rows, bool one_by_one,
               Precision precision) {
  const Index k = x.shape()[1], n = w.shape()[1];
  Tensor y = Tensor::full({x.shape()[0], n}, real(0.5));
  std::vector<GemmProduct> products;
  Index begin = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Operand b = matrix(w.data() + static_cast<Index>(i) * n * k, n, k);
    products.push_back({matrix(x.row(begin), rows[i], k), transpose(b), y.row(begin), n,
                        i % 2 == 0 ? Accumulate::no : Accumulate::yes});
    begin += rows[i];
  }
  if (!one_by_one) {
    gemm_group(products, precision);
    return y;
  }
  for (const GemmProduct& p : products) gemm(p.a, p.b, p.c, p.c_stride, p.accumulate, precision);
  return y;
}

TEST_P(GemmGroup, has_the_bits_of_single_products) {
  const Tensor x = test::random({700, 90}, "x"), w = test::random({5, 130, 90}, "w");
  for (const std::vector<Index>& rows :
       {std::vector<Index>{140, 140, 140, 140, 140}, {600, 0, 3, 96, 1}, {0, 0, 0, 0, 700}}) {
    const Tensor expected = grouped(x, w, rows, true, precision);
    for (const int threads : {1, 3}) {
      const test::Threads scope(threads);
      EXPECT_TRUE(test::same(grouped(x, w, rows, false, precision), expected)) << threads;
    }
  }
}

TEST_P(GemmGroup, of_other_sizes_has_the_bits_of_single_products) {  // gradients of two weights
  const Tensor x = test::random({600, 450}, "x"), y = test::random({600, 130}, "y");
  const auto gradients = [&](auto multiply) {
    std::vector<Tensor> c{Tensor::full({450, 130}, real(0.5)), Tensor::full({130, 450}, 2)};
    multiply(std::vector<GemmProduct>{
        {transpose(matrix(x)), matrix(y), c[0].data(), 130, Accumulate::yes},
        {transpose(matrix(y)), matrix(x), c[1].data(), 450}});
    return c;
  };
  const auto expected = gradients([&](const auto& products) {
    for (const GemmProduct& p : products) gemm(p.a, p.b, p.c, p.c_stride, p.accumulate, precision);
  });
  const auto found = gradients([&](const auto& products) { gemm_group(products, precision); });
  for (const size_t i : {0, 1}) EXPECT_TRUE(test::same(found[i], expected[i])) << i;
}

TEST_P(GemmGroup, takes_memory_that_does_not_depend_on_the_division_of_rows) {
  const Tensor x = test::random({700, 500}, "x"), y = test::random({700, 450}, "y");
  Tensor c = Tensor::empty({3, 500, 450});
  std::vector<size_t> peaks;
  for (const std::vector<Index>& rows : {std::vector<Index>{233, 233, 234}, {700, 0, 0}}) {
    std::vector<GemmProduct> products;
    Index begin = 0;
    for (Index i = 0; i < 3; ++i) {
      products.push_back({transpose(matrix(x.row(begin), rows[i], 500)),
                          matrix(y.row(begin), rows[i], 450), c.data() + i * 500 * 450, 450});
      begin += rows[i];
    }
    const auto before = pool::stats().bytes_in_use;
    pool::reset_peak();
    gemm_group(products, precision);
    peaks.push_back(pool::stats().peak_bytes_in_use - before);
  }
  EXPECT_EQ(peaks[0], peaks[1]);
  EXPECT_GT(peaks[0], 0u);
}

INSTANTIATE_TEST_SUITE_P(Arithmetics, GemmGroup, testing::ValuesIn(test::arithmetics()),
                         test::name_of);

}  // namespace
}  // namespace difftape
