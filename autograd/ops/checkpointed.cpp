// A function whose activations are recomputed in backward (Chen et al. 2016).
//   forward   y = body(x)                    on a tape that records nothing
//   backward  y = body(x) again, on an inner tape; its backward from dy gives
//             dx += dx of that tape          and adds to the gradients of body's parameters
//   saves     x
//   fails     errors of body, in forward
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
