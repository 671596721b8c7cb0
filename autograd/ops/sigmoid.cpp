// Logistic function of every element.
//   forward   y = 1 / (1 + exp(-x))
//   backward  dx += dy * y * (1 - y)
//   saves     y
//   fails     never
#include "autograd/ops.h"
#include "core/rows.h"

namespace difftape {

Var sigmoid(const Var& x) {
  Tensor y = Tensor::like(x.value());
  for_each_row(x.value(), y, [](ConstRow xi, Row yi) { yi = (1 + (-xi).exp()).inverse(); });
  return record("sigmoid", y, {x}, [y, dx = x.gradient()](const Tensor& dy) {
    Tensor out = dx.sum();
    for_each_row(y, dy, out,
                 [](ConstRow yi, ConstRow dyi, Row dxi) { dxi += dyi * yi * (1 - yi); });
  });
}

}  // namespace difftape
