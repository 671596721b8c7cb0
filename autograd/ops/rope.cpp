// Rotary position embedding, interleaved: with a, b = x[2i], x[2i+1], an angle of t times the
// frequency of plane i, and the attention factor m of core/rope.h,
//   forward   y[2i] = m (a cos - b sin),  y[2i+1] = m (a sin + b cos)        each token and head
//   backward  dx += m dy rotated by the negative angle
//   saves     the table
//   fails     x is not (B, T, H, D), or the table has another D or a shorter T
#include "autograd/ops.h"

namespace difftape {

Var rope(Var x, std::shared_ptr<const RopeTable> table, Index first) {
  Tensor y = x.value().unique() ? x.value() : Tensor::like(x.value());
  table->rotate(x.value(), y, 1, first);
  return record("rope", y, {x},
                [table = std::move(table), first, dx = x.gradient()](const Tensor& dy) {
                  Tensor back = Tensor::like(dy);
                  table->rotate(dy, back, -1, first);
                  dx.add(back);
                });
}

}  // namespace difftape
