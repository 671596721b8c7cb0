// A linear function of every element.
//   forward   y = scale x + shift
//   backward  dx += scale dy
//   saves     nothing
//   fails     never
#include "autograd/ops.h"
#include "core/rows.h"

namespace difftape {

Var affine(const Var& x, double scale, double shift) {
  const auto s = static_cast<real>(scale), c = static_cast<real>(shift);
  Tensor y = Tensor::like(x.value());
  for_each_row(x.value(), y, [s, c](ConstRow xi, Row yi) { yi = xi * s + c; });
  return record("affine", y, {x}, [dx = x.gradient(), s](const Tensor& dy) {
    Tensor out = dx.sum();
    for_each_row(dy, out, [s](ConstRow dyi, Row dxi) { dxi += dyi * s; });
  });
}

}  // namespace difftape
