// Linear map without bias; weight is [out, in].
//   forward   y = x W^T         or residual + x W^T
//   backward  dx += dy W
//             dW += dy^T x        over all rows of x
//             dresidual += dy
//   saves     x, W
//   fails     the last axis of x is not the second axis of W, the residual has not the shape of y
#include "autograd/ops.h"
#include "core/error.h"

namespace difftape {

Var linear(const Var& x, const Var& weight, const Var& residual) {
  const Shape &sx = x.shape(), &sw = weight.shape();
  require_shape(sx.rank() >= 1 && sw.rank() == 2 && sx.last() == sw[1], "linear",
                "inner sizes differ: x is {}, weight is {}; need x.shape[-1] == weight.shape[1]",
                sx.str(), sw.str());
  Tensor y = Tensor::empty(sx.with(-1, sw[0]));
  require_shape(!residual.defined() || residual.shape() == y.shape(), "linear",
                "the residual is {}; need {}", residual.shape().str(), y.shape().str());
  const Precision precision = x.tape().precision();
  const Operand left = matrix(x.value()), right = transpose(matrix(weight.value()));
  if (residual.defined()) {
    gemm_with_residual(residual.value().data(), left, right, y.data(), sw[0], precision);
  } else {
    gemm(left, right, y.data(), sw[0], Accumulate::no, precision);
  }
  return record("linear", y, {x, weight, residual},
                [x = x.value(), w = weight.value(), dx = x.gradient(), dw = weight.gradient(),
                 dresidual = residual.gradient(), precision](const Tensor& dy) {
                  dresidual.add(dy);
                  if (dx.requires_grad()) {
                    Gradient::Buffer buffer = dx.buffer();
                    gemm(matrix(dy), matrix(w), buffer.grad.data(), w.shape()[1], buffer.accumulate,
                         precision);
                  }
                  if (dw.requires_grad()) {
                    Gradient::Buffer buffer = dw.buffer();
                    gemm(transpose(matrix(dy)), matrix(x), buffer.grad.data(), w.shape()[1],
                         buffer.accumulate, precision);
                  }
                });
}

}  // namespace difftape
