#pragma once
// Vectorised arithmetic over rows: views of contiguous memory as Eigen arrays. Of Eigen's
// arithmetic what is element-wise and exact is used; its sums go in an order, and its exp, log,
// tanh and sqrt have last digits, that follow from the instruction set: for those there is sum_of,
// simd.h and the standard library.

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

/// Calls f(x_row, y_row) for every row of the last axis, in parallel; rows of x and y correspond.
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
