// a b, element-wise.
//   forward   y = a * b        with broadcasting
//   backward  da += dy * b     summed over the axes along which a was repeated
//             db += dy * a
//   saves     a, b
//   fails     the shapes do not broadcast
#include "autograd/broadcast.h"
#include "autograd/ops.h"

namespace difftape {

Var mul(const Var& a, const Var& b) {
  const auto product = [](real ai, real bi) { return ai * bi; };
  Tensor y = broadcast_map("mul", a.value(), b.value(), product);
  return record("mul", y, {a, b},
                [a = a.value(), b = b.value(), da = a.gradient(), db = b.gradient(),
                 product](const Tensor& dy) {
                  if (da.wanted()) add_reduced(broadcast_map("mul", dy, b, product), da.sum());
                  if (db.wanted()) add_reduced(broadcast_map("mul", dy, a, product), db.sum());
                });
}

}  // namespace difftape
