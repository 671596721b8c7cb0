// a + b.
//   forward   y = a + b        with broadcasting
//   backward  da += dy         summed over the axes along which a was repeated
//             db += dy
//   saves     nothing
//   fails     the shapes do not broadcast
#include "autograd/broadcast.h"
#include "autograd/ops.h"
#include "core/rows.h"

namespace difftape {

namespace {
void add_gradient(const Gradient& to, const Shape& shape, const Tensor& dy) {
  if (!to.wanted()) return;
  if (shape.size() == dy.size()) {
    to.add(dy);
  } else {
    add_reduced(dy, to.sum());
  }
}
}  // namespace

Var add(const Var& a, const Var& b) {
  Tensor y;
  if (a.shape() == b.shape()) {
    y = Tensor::like(a.value());
    for_each_row(a.value(), b.value(), y, [](ConstRow ai, ConstRow bi, Row yi) { yi = ai + bi; });
  } else {
    y = broadcast_map("add", a.value(), b.value(), [](real ai, real bi) { return ai + bi; });
  }
  return record(
      "add", y, {a, b},
      [da = a.gradient(), db = b.gradient(), sa = a.shape(), sb = b.shape()](const Tensor& dy) {
        add_gradient(da, sa, dy);
        add_gradient(db, sb, dy);
      });
}

}  // namespace difftape
