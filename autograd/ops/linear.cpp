// Linear map without bias; weight is [out, in].
//   forward   y = x W^T         or addend + x W^T
//   backward  dx += dy W
//             dW += dy^T x        over all rows of x
//             daddend += dy
//   saves     x, W
//   fails     the last axis of x is not the second axis of W, the addend has not the shape of y
#include "autograd/ops.h"
#include "core/error.h"

namespace difftape {

namespace {
Operand rows_of(const Tensor& x) { return matrix(x.data(), x.shape().rows(), x.shape().last()); }
}  // namespace

Var linear(const Var& x, const Var& weight, const Var& addend) {
  const Shape &sx = x.shape(), &sw = weight.shape();
  require_shape(sx.rank() >= 1 && sw.rank() == 2 && sx.last() == sw[1], "linear",
                "inner sizes differ: x is {}, weight is {}; need x.shape[-1] == weight.shape[1]",
                sx.str(), sw.str());
  Tensor y = Tensor::empty(sx.with(-1, sw[0]));
  require_shape(!addend.defined() || addend.shape() == y.shape(), "linear",
                "the addend is {}; need {}", addend.shape().str(), y.shape().str());
  const Precision precision = x.tape().precision();
  const Operand left = rows_of(x.value()), right = transpose(rows_of(weight.value()));
  if (addend.defined()) {
    gemm_onto(addend.value().data(), left, right, y.data(), sw[0], precision);
  } else {
    gemm(left, right, y.data(), sw[0], Into::overwrite, precision);
  }
  return record("linear", y, {x, weight, addend},
                [x = x.value(), w = weight.value(), dx = x.gradient(), dw = weight.gradient(),
                 daddend = addend.gradient(), precision](const Tensor& dy) {
                  daddend.add(dy);
                  if (dx.wanted()) {
                    Gradient::Slot slot = dx.slot();
                    gemm(rows_of(dy), rows_of(w), slot.out.data(), w.shape()[1], slot.into,
                         precision);
                  }
                  if (dw.wanted()) {
                    Gradient::Slot slot = dw.slot();
                    gemm(transpose(rows_of(dy)), rows_of(x), slot.out.data(), w.shape()[1],
                         slot.into, precision);
                  }
                });
}

}  // namespace difftape
