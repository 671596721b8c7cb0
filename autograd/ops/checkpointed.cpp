// A function whose activations are recomputed in backward (Chen et al. 2016).
//   forward   y = body(x)                    on a tape that records nothing
//   backward  y = body(x) again, on an inner tape; its backward from dy gives
//             dx += dx of that tape          and adds to the gradients of body's parameters
//   saves     x
//   fails     errors of body, in forward
// The first of several results is recorded first. So its pullback runs last, and the others have
// left their gradients for it.
#include "autograd/ops.h"

namespace difftape {

Var checkpointed(const Var& x, const std::function<Var(const Var&)>& body) {
  return checkpointed(x, std::function<std::vector<Var>(const Var&)>(
                             [body](const Var& in) { return std::vector<Var>{body(in)}; }))[0];
}

std::vector<Var> checkpointed(const Var& x,
                              const std::function<std::vector<Var>(const Var&)>& body) {
  if (!x.gradient().requires_grad()) return body(x);
  const Tape& tape = x.tape();
  Tape forward = tape.inner(Tape::Mode::inference);
  std::vector<Var> results = body(forward.constant(x.value()));
  const auto others = std::make_shared<std::vector<Tensor>>(results.size());
  results[0] = record("checkpointed", results[0].value(), {x},
                      [x = x.value(), dx = x.gradient(), body, others, &tape](const Tensor& dy) {
                        Tape again = tape.inner(Tape::Mode::training);
                        const Var from = again.input(x);
                        const std::vector<Var> y = body(from);
                        for (size_t i = 1; i < y.size(); ++i) {
                          if ((*others)[i].allocated()) y[i].gradient().add((*others)[i]);
                        }
                        again.backward(y[0], dy);
                        dx.add(again.gradient_of(from));
                      });
  for (size_t i = 1; i < results.size(); ++i) {
    results[i] = record("checkpointed", results[i].value(), {x},
                        [others, i](const Tensor& dy) { (*others)[i] = dy; });
  }
  return results;
}

}  // namespace difftape
