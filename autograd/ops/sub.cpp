// a - b.
//   forward   y = a - b        with broadcasting
//   backward  da += dy         summed over the axes along which a was repeated
//             db -= dy
//   saves     nothing
//   fails     the shapes do not broadcast
#include "autograd/broadcast.h"
#include "autograd/ops.h"
#include "core/rows.h"

namespace difftape {

Var sub(const Var& a, const Var& b) {
  Tensor y = broadcast_map("sub", a.value(), b.value(), [](real ai, real bi) { return ai - bi; });
  return record("sub", y, {a, b}, [da = a.gradient(), db = b.gradient()](const Tensor& dy) {
    if (da.wanted()) add_reduced(dy, da.sum());
    if (!db.wanted()) return;
    Tensor negative = Tensor::like(dy);
    for_each_row(dy, negative, [](ConstRow in, Row out) { out = -in; });
    add_reduced(negative, db.sum());
  });
}

}  // namespace difftape
