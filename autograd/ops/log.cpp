// Natural logarithm of every element.
//   forward   y = log(x)
//   backward  dx += dy / x
//   saves     x
//   fails     never; log(0) is -inf and log of a negative number NaN, as IEEE has it
#include "autograd/ops.h"
#include "core/rows.h"

namespace difftape {

Var log(const Var& x) {
  Tensor y = Tensor::like(x.value());
  for_each_row(x.value(), y, [](ConstRow xi, Row yi) { yi = xi.log(); });
  return record("log", y, {x}, [x = x.value(), dx = x.gradient()](const Tensor& dy) {
    Tensor out = dx.sum();
    for_each_row(x, dy, out, [](ConstRow xi, ConstRow dyi, Row dxi) { dxi += dyi / xi; });
  });
}

}  // namespace difftape
