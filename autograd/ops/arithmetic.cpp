// Arithmetic of two tensors, element-wise, with broadcasting: gradients are summed over the axes
// along which their operand was repeated.
//          forward      backward                        saves
//   add    y = a + b    da += dy       db += dy         nothing
//   sub    y = a - b    da += dy       db -= dy         nothing
//   mul    y = a * b    da += dy * b   db += dy * a     a, b
//   fails  the shapes do not broadcast
#include "autograd/broadcast.h"
#include "autograd/ops.h"
#include "core/rows.h"

namespace difftape {

namespace {
void add_gradient(const Gradient& to, const Shape& shape, const Tensor& dy) {
  if (!to.requires_grad()) return;
  if (shape.size() == dy.size()) {
    to.add(dy);
  } else {
    add_reduced(dy, to.grad());
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

Var sub(const Var& a, const Var& b) {
  Tensor y = broadcast_map("sub", a.value(), b.value(), [](real ai, real bi) { return ai - bi; });
  return record("sub", y, {a, b}, [da = a.gradient(), db = b.gradient()](const Tensor& dy) {
    if (da.requires_grad()) add_reduced(dy, da.grad());
    if (!db.requires_grad()) return;
    Tensor negative = Tensor::like(dy);
    for_each_row(dy, negative, [](ConstRow in, Row out) { out = -in; });
    add_reduced(negative, db.grad());
  });
}

Var mul(const Var& a, const Var& b) {
  const auto product = [](real ai, real bi) { return ai * bi; };
  Tensor y = broadcast_map("mul", a.value(), b.value(), product);
  return record("mul", y, {a, b},
                [a = a.value(), b = b.value(), da = a.gradient(), db = b.gradient(),
                 product](const Tensor& dy) {
                  if (da.requires_grad())
                    add_reduced(broadcast_map("mul", dy, b, product), da.grad());
                  if (db.requires_grad())
                    add_reduced(broadcast_map("mul", dy, a, product), db.grad());
                });
}

}  // namespace difftape
