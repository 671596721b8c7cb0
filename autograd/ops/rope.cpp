// Rotary position embedding, interleaved: with a, b = x[2i], x[2i+1] and angle t theta^(-2i/D),
//   forward   y[2i] = a cos - b sin,  y[2i+1] = a sin + b cos        each token and head
//   backward  dx += dy rotated by the negative angle
//   saves     nothing but the table
//   fails     x is not (B, T, H, D), or the table is for another D or a shorter T
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
