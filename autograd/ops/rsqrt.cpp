// Reciprocal square root of every element.
//   forward   y = 1 / sqrt(x)
//   backward  dx += -dy y^3 / 2
//   saves     y
//   fails     never; rsqrt(0) is inf and of a negative number NaN, as IEEE has it
#include "autograd/ops.h"
#include "core/rows.h"

namespace difftape {

Var rsqrt(const Var& x) {
  Tensor y = Tensor::like(x.value());
  for_each_row(x.value(), y, [](ConstRow xi, Row yi) { yi = xi.sqrt().inverse(); });
  return record("rsqrt", y, {x}, [y, dx = x.gradient()](const Tensor& dy) {
    Tensor out = dx.sum();
    for_each_row(y, dy, out,
                 [](ConstRow yi, ConstRow dyi, Row dxi) { dxi += dyi * yi.cube() * real(-0.5); });
  });
}

}  // namespace difftape
