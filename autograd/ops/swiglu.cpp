// SwiGLU (Shazeer 2020): with s = 1 / (1 + exp(-gate)),
//   forward   y = gate s up
//   backward  dgate += dy up s (1 + gate (1 - s))
//             dup   += dy gate s
//   saves     gate, up
//   fails     the shapes differ
#include "autograd/ops.h"
#include "core/error.h"
#include "core/rows.h"

namespace difftape {

Var swiglu(const Var& gate, const Var& up) {
  require_shape(gate.shape() == up.shape(), "swiglu", "gate is {}, up is {}; need equal shapes",
                gate.shape().str(), up.shape().str());
  Tensor y = Tensor::like(up.value());
  for_each_row(gate.value(), up.value(), y,
               [](ConstRow gi, ConstRow ui, Row yi) { yi = gi * ui / (1 + (-gi).exp()); });
  const auto pullback = [g = gate.value(), u = up.value(), dgate = gate.gradient(),
                         dup = up.gradient()](const Tensor& dy) {
    Gradient::Slot to_gate, to_up;
    if (dgate.wanted()) to_gate = dgate.slot();
    if (dup.wanted()) to_up = dup.slot();
    constexpr Index kGrain = 2048;  // s, and a range of every operand, stay in the L1 cache
    parallel_ranges(dy.size(), kGrain, [&](Index i, Index n) {
      const ConstRow gi(g.data() + i, n), ui(u.data() + i, n), dyi(dy.data() + i, n);
      real memory[kGrain];
      Row s(memory, n);
      s = (1 + (-gi).exp()).inverse();
      if (dgate.wanted()) {
        put(Row(to_gate.out.data() + i, n), to_gate.into, dyi * ui * s * (1 + gi * (1 - s)));
      }
      if (dup.wanted()) put(Row(to_up.out.data() + i, n), to_up.into, dyi * gi * s);
    });
  };
  return record("swiglu", y, {gate, up}, pullback);
}

}  // namespace difftape
