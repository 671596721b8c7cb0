#pragma once
// Vectorised arithmetic over rows: views of contiguous memory as Eigen arrays.

#include <Eigen/Core>

#include "core/gemm.h"
#include "core/parallel.h"
#include "core/tensor.h"

namespace difftape {

using Row = Eigen::Map<Eigen::Array<real, 1, Eigen::Dynamic>>;
using ConstRow = Eigen::Map<const Eigen::Array<real, 1, Eigen::Dynamic>>;

/// target = value, or += value.
template <class Expression>
void store_or_add(Row target, Accumulate accumulate, const Eigen::ArrayBase<Expression>& value) {
  if (accumulate == Accumulate::no) {
    target = value;
  } else {
    target += value;
  }
}

/// Calls f(x_row, y_row) for every row of the last axis, in parallel; rows of x and y correspond.
template <class F>
void for_each_row(const Tensor& x, Tensor& y, F&& f) {
  const Index width_x = x.shape().last(), width_y = y.shape().last();
  const Index rows = width_y == 0 ? 0 : y.size() / width_y;
  parallel_ranges(rows, row_grain(width_x + width_y), [&](Index begin, Index count) {
    for (Index i = begin; i < begin + count; ++i) {
      f(ConstRow(x.data() + i * width_x, width_x), Row(y.data() + i * width_y, width_y));
    }
  });
}

/// Calls f(a_row, b_row, y_row) for every row of the last axis, in parallel.
template <class F>
void for_each_row(const Tensor& a, const Tensor& b, Tensor& y, F&& f) {
  const Index width_a = a.shape().last(), width_b = b.shape().last(), width_y = y.shape().last();
  const Index rows = width_y == 0 ? 0 : y.size() / width_y;
  parallel_ranges(rows, row_grain(width_a + width_b + width_y), [&](Index begin, Index count) {
    for (Index i = begin; i < begin + count; ++i) {
      f(ConstRow(a.data() + i * width_a, width_a), ConstRow(b.data() + i * width_b, width_b),
        Row(y.data() + i * width_y, width_y));
    }
  });
}

}  // namespace difftape
