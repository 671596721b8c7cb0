// The linear map without bias, W (out, in), and the same of SwiGLU (Shazeer 2020), whose value h is
// recomputed in backward. With s = 1 / (1 + exp(-gate)) and h = gate s up,
//             linear                        swiglu_linear
//   forward   y = x W^T                     y = h W^T            plus the residual, if there is one
//   backward  dx += dy W                    dh = dy W
//                                           dgate += dh up s (1 + gate (1 - s))
//                                           dup   += dh gate s
//             dW += dy^T x                  dW    += dy^T h      over all rows
//             dresidual += dy               dresidual += dy
//   saves     x, W                          gate, up, W           x in the precision of the product
//   fails     the last axis of x or gate is not the second axis of W; the shapes of gate and up
//             differ; the residual's shape differs from y's
#include "autograd/ops.h"
#include "core/error.h"
#include "core/parallel.h"
#include "core/simd_functions.h"

namespace difftape {

namespace {

/// Returns x W^T, plus the residual if defined.
Tensor projected(const char* op, const SavedTensor& x, const Tensor& weight, const Var& residual,
                 Precision precision) {
  const Index width = weight.shape()[0];
  Tensor y = Tensor::empty(x.shape().with(-1, width));
  require_shape(!residual.defined() || residual.shape() == y.shape(), op,
                "the residual is {}; need {}", residual.shape().str(), y.shape().str());
  const Operand left = x.matrix(), right = transpose(matrix(weight));
  if (residual.defined()) {
    gemm_with_residual(residual.value().data(), left, right, y.data(), width, precision);
  } else {
    gemm(left, right, y.data(), width, Accumulate::no, precision);
  }
  return y;
}

/// gradient = or += a b, if required.
void add_product(const Gradient& gradient, const Operand& a, const Operand& b,
                 Precision precision) {
  if (!gradient.requires_grad()) return;
  Gradient::Buffer buffer = gradient.buffer();
  gemm(a, b, buffer.grad.data(), b.cols, buffer.accumulate, precision);
}

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

/// Adds to the gradients of gate and up from dh, and overwrites dh with h.
void hidden_backward(const Tensor& gate, const Tensor& up, Tensor& dh, const Gradient& dgate,
                     const Gradient& dup) {
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
      const Simd g = load(gate.data() + i, count), u = load(up.data() + i, count),
                 dhi = load(dh.data() + i, count), s = sigmoid_simd(g);
      add(to_gate, dhi * u * s * fma(g, 1 - s, 1));
      add(to_up, dhi * g * s);
      store(g * s * u, dh.data() + i, count);
    });
  });
}

}  // namespace

Var linear(const Var& x, const Var& weight, const Var& residual) {
  const Shape &sx = x.shape(), &sw = weight.shape();
  require_shape(sx.rank() >= 1 && sw.rank() == 2 && sx.last() == sw[1], "linear",
                "inner sizes differ: x is {}, weight is {}; need x.shape[-1] == weight.shape[1]",
                sx.str(), sw.str());
  const Precision precision = x.tape().precision();
  const SavedTensor saved = x.tape().saved(x.value());
  return record("linear", projected("linear", saved, weight.value(), residual, precision),
                {x, weight, residual},
                [saved, w = weight.value(), dx = x.gradient(), dw = weight.gradient(),
                 dresidual = residual.gradient(), precision](const Tensor& dy) {
                  dresidual.add(dy);
                  if (!dx.requires_grad() && !dw.requires_grad()) return;
                  const SavedTensor rounded(dy, precision);  // once for both products
                  add_product(dx, rounded.matrix(), matrix(w), precision);
                  add_product(dw, transpose(rounded.matrix()), saved.matrix(), precision);
                });
}

Var swiglu_linear(const Var& gate, const Var& up, const Var& weight, const Var& residual) {
  const Shape &sg = gate.shape(), &sw = weight.shape();
  require_shape(sg == up.shape(), "swiglu_linear", "gate is {}, up is {}; need equal shapes",
                sg.str(), up.shape().str());
  require_shape(sg.rank() >= 1 && sw.rank() == 2 && sg.last() == sw[1], "swiglu_linear",
                "inner sizes differ: gate is {}, weight is {}; need gate.shape[-1] == "
                "weight.shape[1]",
                sg.str(), sw.str());
  const Precision precision = gate.tape().precision();
  const SavedTensor h(hidden_of(gate.value(), up.value()), precision);
  return record("swiglu_linear", projected("swiglu_linear", h, weight.value(), residual, precision),
                {gate, up, weight, residual},
                [g = gate.value(), u = up.value(), w = weight.value(), dgate = gate.gradient(),
                 dup = up.gradient(), dw = weight.gradient(), dresidual = residual.gradient(),
                 precision](const Tensor& dy) {
                  dresidual.add(dy);
                  const SavedTensor rounded(dy, precision);
                  Tensor hidden = Tensor::like(u);  // dh, then h
                  gemm(rounded.matrix(), matrix(w), hidden.data(), w.shape()[1], Accumulate::no,
                       precision);
                  hidden_backward(g, u, hidden, dgate, dup);
                  add_product(dw, transpose(rounded.matrix()), matrix(hidden), precision);
                });
}

}  // namespace difftape
