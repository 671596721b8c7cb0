#pragma once
// Vectorized arithmetic over rows: contiguous memory as Eigen arrays. Only Eigen's exact
// element-wise arithmetic is used: the order of its sums and the last digits of its exp, log, tanh
// and sqrt depend on the instruction set. Use sum_of, simd.h and the standard library for those.

#include <Eigen/Core>

#include "core/parallel.h"
#include "core/tensor.h"

namespace difftape {

using Row = Eigen::Map<Eigen::Array<real, 1, Eigen::Dynamic>>;
using ConstRow = Eigen::Map<const Eigen::Array<real, 1, Eigen::Dynamic>>;

/// Sums 16 interleaved partial sums, folds them by halves, then adds the tail in order.
template <class Expression>
auto sum_of(const Eigen::ArrayBase<Expression>& row) {
  constexpr int kWidth = 16;
  using Number = typename Expression::Scalar;
  Eigen::Array<Number, 1, kWidth> sums = Eigen::Array<Number, 1, kWidth>::Zero();
  Index i = 0;
  for (; i + kWidth <= row.size(); i += kWidth) sums += row.template segment<kWidth>(i);
  for (int half = kWidth / 2; half > 0; half /= 2)
    for (int lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  Number total = sums[0];
  for (; i < row.size(); ++i) total += row[i];
  return total;
}

/// target = value, or += value.
template <class Expression>
void store_or_add(Row target, Accumulate accumulate, const Eigen::ArrayBase<Expression>& value) {
  if (accumulate == Accumulate::no) {
    target = value;
  } else {
    target += value;
  }
}

namespace detail {
template <class F, class... Inputs>
void for_each_row(F& f, Tensor& y, const Inputs&... x) {
  const Index width = y.shape().last(), rows = width == 0 ? 0 : y.size() / width;
  parallel_ranges(rows, row_grain((x.shape().last() + ... + width)), [&](Index begin, Index count) {
    for (Index i = begin; i < begin + count; ++i)
      f(ConstRow(x.row(i), x.shape().last())..., Row(y.row(i), width));
  });
}
}  // namespace detail

/// Calls f(x_row, y_row) for corresponding rows of the last axis, in parallel.
template <class F>
void for_each_row(const Tensor& x, Tensor& y, F&& f) {
  detail::for_each_row(f, y, x);
}
/// Calls f(a_row, b_row, y_row) likewise.
template <class F>
void for_each_row(const Tensor& a, const Tensor& b, Tensor& y, F&& f) {
  detail::for_each_row(f, y, a, b);
}

}  // namespace difftape
