// Exponential of every element.
//   forward   y = exp(x)
//   backward  dx += dy * y
//   saves     y
//   fails     never; overflow gives inf, as IEEE has it
#include "autograd/ops.h"
#include "core/rows.h"

namespace difftape {

Var exp(const Var& x) {
  Tensor y = Tensor::like(x.value());
  for_each_row(x.value(), y, [](ConstRow xi, Row yi) { yi = xi.exp(); });
  return record("exp", y, {x}, [y, dx = x.gradient()](const Tensor& dy) {
    Tensor out = dx.sum();
    for_each_row(y, dy, out, [](ConstRow yi, ConstRow dyi, Row dxi) { dxi += dyi * yi; });
  });
}

}  // namespace difftape
