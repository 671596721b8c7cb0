// SwiGLU (Shazeer 2020) and the projection that follows it, whose operand h is not kept: with
// s = 1 / (1 + exp(-gate)) and h = gate s up,
//   forward   y = h W^T         or addend + h W^T
//   backward  dh = dy W
//             dgate += dh up s (1 + gate (1 - s))
//             dup   += dh gate s
//             dW    += dy^T h   over all rows of h, which is computed again
//             daddend += dy
//   saves     gate, up, W
//   fails     the shapes of gate and up differ, their last axis is not the second axis of W, the
//             addend has not the shape of y
#include "autograd/ops.h"
#include "core/error.h"
#include "core/rows.h"

namespace difftape {

namespace {

Operand rows_of(const Tensor& x) { return matrix(x.data(), x.shape().rows(), x.shape().last()); }

constexpr Index kGrain = 2048;  // s, and a range of every operand, stay in the L1 cache

struct Saved {
  Tensor gate, up, weight;
  Precision precision;
};

Tensor hidden_of(const Tensor& gate, const Tensor& up) {
  Tensor h = Tensor::like(up);
  parallel_ranges(h.size(), kGrain, [&](Index i, Index n) {
    const ConstRow g(gate.data() + i, n), u(up.data() + i, n);
    Row(h.data() + i, n) = g * u / (1 + (-g).exp());
  });
  return h;
}

/// The gradients of gate and up from that of h, in whose place h itself is put.
void hidden_backward(const Saved& saved, Tensor& dh, const Gradient& dgate, const Gradient& dup) {
  Gradient::Slot to_gate, to_up;
  if (dgate.wanted()) to_gate = dgate.slot();
  if (dup.wanted()) to_up = dup.slot();
  parallel_ranges(dh.size(), kGrain, [&](Index i, Index n) {
    const ConstRow g(saved.gate.data() + i, n), u(saved.up.data() + i, n);
    Row dhi(dh.data() + i, n);
    real memory[kGrain];
    Row s(memory, n);
    s = (1 + (-g).exp()).inverse();
    if (dgate.wanted()) {
      put(Row(to_gate.out.data() + i, n), to_gate.into, dhi * u * s * (1 + g * (1 - s)));
    }
    if (dup.wanted()) put(Row(to_up.out.data() + i, n), to_up.into, dhi * g * s);
    dhi = g * s * u;
  });
}

}  // namespace

Var swiglu_linear(const Var& gate, const Var& up, const Var& weight, const Var& addend) {
  const Shape &sg = gate.shape(), &sw = weight.shape();
  require_shape(sg == up.shape(), "swiglu_linear", "gate is {}, up is {}; need equal shapes",
                sg.str(), up.shape().str());
  require_shape(sg.rank() >= 1 && sw.rank() == 2 && sg.last() == sw[1], "swiglu_linear",
                "inner sizes differ: gate is {}, weight is {}; need gate.shape[-1] == "
                "weight.shape[1]",
                sg.str(), sw.str());
  Tensor y = Tensor::empty(sg.with(-1, sw[0]));
  require_shape(!addend.defined() || addend.shape() == y.shape(), "swiglu_linear",
                "the addend is {}; need {}", addend.shape().str(), y.shape().str());
  const Saved saved{gate.value(), up.value(), weight.value(), gate.tape().precision()};
  const Tensor h = hidden_of(saved.gate, saved.up);
  const Operand w = rows_of(saved.weight);
  if (addend.defined()) {
    gemm_onto(addend.value().data(), rows_of(h), transpose(w), y.data(), sw[0], saved.precision);
  } else {
    gemm(rows_of(h), transpose(w), y.data(), sw[0], Into::overwrite, saved.precision);
  }
  return record("swiglu_linear", y, {gate, up, weight, addend},
                [saved, dgate = gate.gradient(), dup = up.gradient(), dw = weight.gradient(),
                 daddend = addend.gradient()](const Tensor& dy) {
                  daddend.add(dy);
                  const Index width = saved.weight.shape()[1];
                  Tensor hidden = Tensor::like(saved.up);  // its gradient, then itself
                  gemm(rows_of(dy), rows_of(saved.weight), hidden.data(), width, Into::overwrite,
                       saved.precision);
                  hidden_backward(saved, hidden, dgate, dup);
                  if (!dw.wanted()) return;
                  Gradient::Slot slot = dw.slot();
                  gemm(transpose(rows_of(dy)), rows_of(hidden), slot.out.data(), width, slot.into,
                       saved.precision);
                });
}

}  // namespace difftape
