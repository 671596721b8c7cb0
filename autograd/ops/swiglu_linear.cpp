// SwiGLU (Shazeer 2020) and the projection that follows it, whose operand h is not kept: with
// s = 1 / (1 + exp(-gate)) and h = gate s up,
//   forward   y = h W^T         or residual + h W^T
//   backward  dh = dy W
//             dgate += dh up s (1 + gate (1 - s))
//             dup   += dh gate s
//             dW    += dy^T h   over all rows of h, which is computed again
//             dresidual += dy
//   saves     gate, up, W
//   fails     the shapes of gate and up differ, their last axis is not the second axis of W, the
//             residual has not the shape of y
#include "autograd/ops.h"
#include "core/error.h"
#include "core/parallel.h"
#include "core/simd_functions.h"

namespace difftape {

namespace {

struct Saved {
  Tensor gate, up, weight;
  Precision precision;
};

Tensor hidden_of(const Tensor& gate, const Tensor& up) {
  Tensor h = Tensor::like(up);
  parallel_ranges(h.size(), kElementGrain, [&](Index begin, Index n) {
    for_each_vector(n, [&](Index i, Index count) {
      const Simd g = load(gate.data() + begin + i, count);
      store(g * sigmoid_simd(g) * load(up.data() + begin + i, count), h.data() + begin + i, count);
    });
  });
  return h;
}

/// The gradients of gate and up from that of h, in whose place h itself is put.
void hidden_backward(const Saved& saved, Tensor& dh, const Gradient& dgate, const Gradient& dup) {
  Gradient::Buffer to_gate, to_up;
  if (dgate.requires_grad()) to_gate = dgate.buffer();
  if (dup.requires_grad()) to_up = dup.buffer();
  parallel_ranges(dh.size(), kElementGrain, [&](Index begin, Index n) {
    for_each_vector(n, [&](Index offset, Index count) {
      const Index i = begin + offset;
      const auto add = [&](Gradient::Buffer& to, const Simd& value) {
        if (!to.grad.allocated()) return;
        real* out = to.grad.data() + i;
        store(to.accumulate == Accumulate::no ? value : load(out, count) + value, out, count);
      };
      const Simd g = load(saved.gate.data() + i, count), u = load(saved.up.data() + i, count),
                 dhi = load(dh.data() + i, count), s = sigmoid_simd(g);
      add(to_gate, dhi * u * s * fma(g, 1 - s, 1));
      add(to_up, dhi * g * s);
      store(g * s * u, dh.data() + i, count);
    });
  });
}

}  // namespace

Var swiglu_linear(const Var& gate, const Var& up, const Var& weight, const Var& residual) {
  const Shape &sg = gate.shape(), &sw = weight.shape();
  require_shape(sg == up.shape(), "swiglu_linear", "gate is {}, up is {}; need equal shapes",
                sg.str(), up.shape().str());
  require_shape(sg.rank() >= 1 && sw.rank() == 2 && sg.last() == sw[1], "swiglu_linear",
                "inner sizes differ: gate is {}, weight is {}; need gate.shape[-1] == "
                "weight.shape[1]",
                sg.str(), sw.str());
  Tensor y = Tensor::empty(sg.with(-1, sw[0]));
  require_shape(!residual.defined() || residual.shape() == y.shape(), "swiglu_linear",
                "the residual is {}; need {}", residual.shape().str(), y.shape().str());
  const Saved saved{gate.value(), up.value(), weight.value(), gate.tape().precision()};
  const Tensor h = hidden_of(saved.gate, saved.up);
  const Operand w = matrix(saved.weight);
  if (residual.defined()) {
    gemm_with_residual(residual.value().data(), matrix(h), transpose(w), y.data(), sw[0],
                       saved.precision);
  } else {
    gemm(matrix(h), transpose(w), y.data(), sw[0], Accumulate::no, saved.precision);
  }
  return record("swiglu_linear", y, {gate, up, weight, residual},
                [saved, dgate = gate.gradient(), dup = up.gradient(), dw = weight.gradient(),
                 dresidual = residual.gradient()](const Tensor& dy) {
                  dresidual.add(dy);
                  const Index width = saved.weight.shape()[1];
                  Tensor hidden = Tensor::like(saved.up);  // its gradient, then itself
                  gemm(matrix(dy), matrix(saved.weight), hidden.data(), width, Accumulate::no,
                       saved.precision);
                  hidden_backward(saved, hidden, dgate, dup);
                  if (!dw.requires_grad()) return;
                  Gradient::Buffer buffer = dw.buffer();
                  gemm(transpose(matrix(dy)), matrix(hidden), buffer.grad.data(), width,
                       buffer.accumulate, saved.precision);
                });
}

}  // namespace difftape
