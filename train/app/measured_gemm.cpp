#include "train/app/measured_gemm.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "core/random.h"
#include "core/tensor.h"

namespace difftape::app {

MeasuredGemm measure_gemm(Precision precision) {
  constexpr Index kRows = 2048, kCols = 384, kInner = 384, kChecked = 16;
  Tensor a = Tensor::empty({kRows, kInner}), b = Tensor::empty({kCols, kInner}),
         c = Tensor::empty({kRows, kCols});
  fill_normal(a, RandomStream(1, "doctor a"), 1);
  fill_normal(b, RandomStream(1, "doctor b"), 1);
  MeasuredGemm product;
  for (int round = 0; round < 20; ++round) {
    const auto started = std::chrono::steady_clock::now();
    gemm(matrix(a), transpose(matrix(b)), c.data(), kCols, Accumulate::no, precision);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    product.flops = std::max(product.flops, 2.0 * kRows * kCols * kInner / seconds);
  }
  double squares = 0, sizes = 0;
  for (Index i = 0; i < kChecked; ++i) {
    for (Index j = 0; j < kCols; ++j) {
      long double sum = 0;
      for (Index k = 0; k < kInner; ++k)
        sum += static_cast<long double>(a.row(i)[k]) * static_cast<long double>(b.row(j)[k]);
      const auto exact = static_cast<double>(sum);
      squares += std::pow(static_cast<double>(c.row(i)[j]) - exact, 2);
      sizes += exact * exact;
    }
  }
  product.error = std::sqrt(squares / sizes);
  return product;
}

namespace {

/// Returns the result of a product of training size, for numbers whose sums are rounded.
std::vector<real> product_bits(Engine engine) {
  const EngineScope scope(engine);
  constexpr Index kRows = 50, kCols = 100, kInner = 700;
  Tensor a = Tensor::empty({kRows, kInner}), b = Tensor::empty({kInner, kCols}),
         c = Tensor::empty({kRows, kCols});
  fill_normal(a, RandomStream(1, "doctor a"), 1);
  fill_normal(b, RandomStream(1, "doctor b"), 1);
  gemm(matrix(a), matrix(b), c.data(), kCols, Accumulate::no);
  return {c.values().begin(), c.values().end()};
}

}  // namespace

bool has_portable_bits() { return product_bits(Engine::fast) == product_bits(Engine::portable); }

}  // namespace difftape::app
