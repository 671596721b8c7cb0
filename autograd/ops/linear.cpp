// Linear map without bias; weight is [out, in].
//   forward   y = x W^T
//   backward  dx += dy W
//             dW += dy^T x        over all rows of x
//   saves     x, W
//   fails     the last axis of x is not the second axis of W
#include "autograd/ops.h"
#include "core/error.h"

namespace difftape {

namespace {
Operand rows_of(const Tensor& x) { return matrix(x.data(), x.shape().rows(), x.shape().last()); }
}  // namespace

Var linear(const Var& x, const Var& weight) {
  const Shape &sx = x.shape(), &sw = weight.shape();
  require_shape(sx.rank() >= 1 && sw.rank() == 2 && sx.last() == sw[1], "linear",
                "inner sizes differ: x is {}, weight is {}; need x.shape[-1] == weight.shape[1]",
                sx.str(), sw.str());
  Tensor y = Tensor::empty(sx.with(-1, sw[0]));
  gemm(rows_of(x.value()), transpose(rows_of(weight.value())), y.data(), sw[0], Into::overwrite);
  return record("linear", y, {x, weight},
                [x = x.value(), w = weight.value(), dx = x.gradient(),
                 dw = weight.gradient()](const Tensor& dy) {
                  if (dx.wanted()) {
                    Gradient::Slot slot = dx.slot();
                    gemm(rows_of(dy), rows_of(w), slot.out.data(), w.shape()[1], slot.into);
                  }
                  if (dw.wanted()) {
                    Gradient::Slot slot = dw.slot();
                    gemm(transpose(rows_of(dy)), rows_of(x), slot.out.data(), w.shape()[1],
                         slot.into);
                  }
                });
}

}  // namespace difftape
