// Matrix product, one for each index of the leading axes.
//   forward   y = a b
//   backward  da += dy b^T
//             db += a^T dy
//   saves     a, b
//   fails     ranks below 2, leading axes that differ, inner sizes that differ
#include "autograd/ops.h"
#include "core/error.h"

namespace difftape {

namespace {

bool same_leading_axes(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank() - 2; ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

/// Returns matrix i of a tensor; its last two axes are the rows and columns.
Operand matrix_of(const Tensor& x, Index i) {
  const Index rows = x.shape()[-2], cols = x.shape()[-1];
  return matrix(x.data() + i * rows * cols, rows, cols);
}

}  // namespace

Var matmul(const Var& a, const Var& b) {
  const Shape &sa = a.shape(), &sb = b.shape();
  require_shape(sa.rank() >= 2 && same_leading_axes(sa, sb), "matmul",
                "a is {}, b is {}; need (..., M, K) and (..., K, N) with equal leading axes",
                sa.str(), sb.str());
  require_shape(sa[-1] == sb[-2], "matmul",
                "inner sizes differ: a is {}, b is {}; need a.shape[-1] == b.shape[-2]", sa.str(),
                sb.str());
  Tensor y = Tensor::empty(sa.with(-1, sb[-1]));
  const Index count = y.size() == 0 ? 0 : y.size() / (sa[-2] * sb[-1]);
  const auto product = [count](const Tensor& left, bool left_t, const Tensor& right, bool right_t,
                               Tensor out, Accumulate accumulate) {
    const Index rows = out.shape()[-2], cols = out.shape()[-1];
    for (Index i = 0; i < count; ++i) {
      const Operand l = matrix_of(left, i), r = matrix_of(right, i);
      gemm(left_t ? transpose(l) : l, right_t ? transpose(r) : r, out.data() + i * rows * cols,
           cols, accumulate);
    }
  };
  product(a.value(), false, b.value(), false, y, Accumulate::no);
  return record("matmul", y, {a, b},
                [a = a.value(), b = b.value(), da = a.gradient(), db = b.gradient(),
                 product](const Tensor& dy) {
                  if (da.requires_grad()) {
                    const Gradient::Buffer buffer = da.buffer();
                    product(dy, false, b, true, buffer.grad, buffer.accumulate);
                  }
                  if (db.requires_grad()) {
                    const Gradient::Buffer buffer = db.buffer();
                    product(a, true, dy, false, buffer.grad, buffer.accumulate);
                  }
                });
}

}  // namespace difftape
