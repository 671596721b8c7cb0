// A function whose activations are recomputed in backward (Chen et al. 2016).
//   forward   y = body(x, ...)               on a tape that records nothing
//   backward  y = body(x, ...) again, on an inner tape; its backward from dy gives
//             dx += dx of that tape          for each input, and adds to the gradients of body's
//                                            parameters
//   saves     the inputs
//   fails     errors of body, in forward
// The first of several results is recorded first, so its pullback runs last, after the other
// results have received their gradients.
#include <algorithm>

#include "autograd/ops.h"

namespace difftape {

namespace {

/// Returns the inputs as leaves of another tape.
std::vector<Var> leaves(Tape& tape, const std::vector<Tensor>& inputs) {
  std::vector<Var> on_tape;
  for (const Tensor& x : inputs) on_tape.push_back(x.allocated() ? tape.input(x) : Var());
  return on_tape;
}

}  // namespace

std::vector<Var> checkpointed(
    const std::vector<Var>& inputs,
    const std::function<std::vector<Var>(const std::vector<Var>&)>& body) {
  std::vector<Tensor> values;
  std::vector<Gradient> gradients;
  for (const Var& x : inputs) {
    values.push_back(x.value());
    gradients.push_back(x.gradient());
  }
  if (std::ranges::none_of(gradients, &Gradient::requires_grad)) return body(inputs);
  const Tape& tape = std::ranges::find_if(inputs, &Var::defined)->tape();
  Tape forward = tape.inner(Tape::Mode::inference);
  std::vector<Var> results = body(leaves(forward, values));
  const auto others = std::make_shared<std::vector<Tensor>>(results.size());
  const auto pullback = [values, gradients, body, others, &tape](const Tensor& dy) {
    Tape again = tape.inner(Tape::Mode::training);
    const std::vector<Var> from = leaves(again, values), y = body(from);
    for (size_t i = 1; i < y.size(); ++i)
      if ((*others)[i].allocated()) y[i].gradient().add((*others)[i]);
    again.backward(y[0], dy);
    for (size_t i = 0; i < from.size(); ++i)
      if (gradients[i].requires_grad()) gradients[i].add(again.gradient_of(from[i]));
  };
  results[0] = record("checkpointed", results[0].value(), inputs, pullback);
  for (size_t i = 1; i < results.size(); ++i) {
    results[i] = record("checkpointed", results[i].value(), inputs,
                        [others, i](const Tensor& dy) { (*others)[i] = dy; });
  }
  return results;
}

}  // namespace difftape
