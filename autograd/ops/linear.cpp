// The linear map without bias, whose weight W is [out, in]; and SwiGLU (Shazeer 2020) with the map
// that follows it, whose operand h = gate s up, s = 1 / (1 + exp(-gate)), is not kept.
//             linear                           swiglu_linear
//   forward   y = x W^T, or residual + x W^T   y = h W^T, or residual + h W^T
//   backward  dx += dy W                       dh = dy W
//                                              dgate += dh up s (1 + gate (1 - s))
//                                              dup   += dh gate s
//             dW += dy^T x, over all rows      dW += dy^T h; h is computed again
//             dresidual += dy                  dresidual += dy
//   saves     x, W                             gate, up, W
//   fails     the last axis of x or gate is not the second axis of W; the shapes of gate and up
//             differ; the residual's shape differs from y's
#include "autograd/ops.h"
#include "core/error.h"
#include "core/gemm.h"
#include "core/parallel.h"
#include "core/simd_functions.h"

namespace difftape {

namespace {

/// x W^T, plus the residual if there is one.
Tensor product(const char* op, const Tensor& x, const Var& weight, const Var& residual) {
  const Index width = weight.shape()[0];
  Tensor y = Tensor::empty(x.shape().with(-1, width));
  require_shape(!residual.defined() || residual.shape() == y.shape(), op,
                "the residual is {}; need {}", residual.shape().str(), y.shape().str());
  const Operand left = matrix(x), right = transpose(matrix(weight.value()));
  const Precision precision = weight.tape().precision();
  if (residual.defined()) {
    gemm_with_residual(residual.value().data(), left, right, y.data(), width, precision);
  } else {
    gemm(left, right, y.data(), width, Accumulate::no, precision);
  }
  return y;
}

/// dW += dy^T x.
void add_weight_gradient(const Gradient& dw, const Tensor& dy, const Tensor& x,
                         Precision precision) {
  if (!dw.requires_grad()) return;
  Gradient::Buffer buffer = dw.buffer();
  gemm(transpose(matrix(dy)), matrix(x), buffer.grad.data(), x.shape().last(), buffer.accumulate,
       precision);
}

/// The hidden values h.
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

/// Adds the gradients of gate and up that follow from dh, which is overwritten by h itself.
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
  return record("linear", product("linear", x.value(), weight, residual), {x, weight, residual},
                [x = x.value(), w = weight.value(), dx = x.gradient(), dw = weight.gradient(),
                 dresidual = residual.gradient(),
                 precision = x.tape().precision()](const Tensor& dy) {
                  dresidual.add(dy);
                  if (dx.requires_grad()) {
                    Gradient::Buffer buffer = dx.buffer();
                    gemm(matrix(dy), matrix(w), buffer.grad.data(), w.shape()[1], buffer.accumulate,
                         precision);
                  }
                  add_weight_gradient(dw, dy, x, precision);
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
  return record("swiglu_linear",
                product("swiglu_linear", hidden_of(gate.value(), up.value()), weight, residual),
                {gate, up, weight, residual},
                [gate = gate.value(), up = up.value(), w = weight.value(), dgate = gate.gradient(),
                 dup = up.gradient(), dw = weight.gradient(), dresidual = residual.gradient(),
                 precision = gate.tape().precision()](const Tensor& dy) {
                  dresidual.add(dy);
                  Tensor hidden = Tensor::like(up);  // its gradient, then itself
                  gemm(matrix(dy), matrix(w), hidden.data(), w.shape()[1], Accumulate::no,
                       precision);
                  hidden_backward(gate, up, hidden, dgate, dup);
                  add_weight_gradient(dw, dy, hidden, precision);
                });
}

}  // namespace difftape
