// A part of a model whose activations are not kept: backward computes them again (Chen et al.
// 2016).
//   forward   y = body(x)                    on a tape that records nothing
//   backward  y = body(x) once more, on a tape of its own; its backward from dy gives
//             dx += dx of that tape          and adds to the gradients of body's parameters
//   saves     x
//   fails     what body fails at, in forward
#include "autograd/ops.h"

namespace difftape {

Var checkpointed(const Var& x, const std::function<Var(const Var&)>& body) {
  if (!x.gradient().requires_grad()) return body(x);
  const Tape& tape = x.tape();
  Tape forward = tape.inner(Tape::Mode::inference);
  const Tensor y = body(forward.constant(x.value())).value();
  return record("checkpointed", y, {x},
                [x = x.value(), dx = x.gradient(), body, &tape](const Tensor& dy) {
                  Tape again = tape.inner(Tape::Mode::training);
                  const Var from = again.input(x);
                  again.backward(body(from), dy);
                  dx.add(again.gradient_of(from));
                });
}

}  // namespace difftape
