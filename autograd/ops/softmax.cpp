// softmax over the last axis.
//   forward   y = exp(x - max(x)) / sum(exp(x - max(x)))        each row
//   backward  dx += y * (dy - dot(dy, y))                       each row
//   saves     y
//   fails     x has rank 0, or its last axis is empty
#include "autograd/ops.h"
#include "core/error.h"
#include "core/rows.h"
#include "core/simd_functions.h"

namespace difftape {

Var softmax(const Var& x) {
  require_shape(x.shape().rank() > 0 && x.shape().last() > 0, "softmax",
                "x is {}; need a last axis that is not empty", x.shape().str());
  Tensor y = Tensor::like(x.value());
  for_each_row(x.value(), y, [](ConstRow xi, Row yi) {
    yi = xi;
    yi /= exp_of_differences(yi.data(), yi.size(), xi.maxCoeff());
  });
  return record("softmax", y, {x}, [y, dx = x.gradient()](const Tensor& dy) {
    Tensor out = dx.grad();
    for_each_row(y, dy, out,
                 [](ConstRow yi, ConstRow dyi, Row dxi) { dxi += yi * (dyi - sum_of(dyi * yi)); });
  });
}

}  // namespace difftape
