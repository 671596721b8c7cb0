// Element-wise functions. Shapes never fail; values follow IEEE 754.
//             forward                  backward                     saves
//   exp       y = exp(x)               dx += dy * y                 y
//   log       y = log(x)               dx += dy / x                 x
//   sigmoid   y = 1 / (1 + exp(-x))    dx += dy * y * (1 - y)       y
//   rsqrt     y = 1 / sqrt(x)          dx += -dy y^3 / 2            y
//   softcap   y = cap tanh(x / cap)    dx += dy (1 - (y/cap)^2)     1 - (y/cap)^2
//   affine    y = scale x + shift      dx += scale dy               nothing
#include "autograd/ops.h"
#include "core/rows.h"
#include "core/simd_functions.h"
#include "core/softcap.h"

namespace difftape {

namespace {

template <class F>
Tensor map(const Var& x, F f) {
  Tensor y = Tensor::like(x.value());
  parallel_ranges(y.size(), kElementGrain, [&](Index begin, Index n) {
    for (Index i = begin; i < begin + n; ++i) y.data()[i] = f(x.value().data()[i]);
  });
  return y;
}

/// Makes a pullback that calls f(saved, dy, dx) for each block of elements.
template <class F>
Tape::Pullback pullback(const Tensor& saved, const Var& x, F f) {
  return [saved, dx = x.gradient(), f](const Tensor& dy) {
    Tensor out = dx.grad();
    parallel_ranges(out.size(), kElementGrain, [&](Index i, Index n) {
      f(ConstRow(saved.data() + i, n), ConstRow(dy.data() + i, n), Row(out.data() + i, n));
    });
  };
}

}  // namespace

Var exp(const Var& x) {
  const Tensor y = map(x, [](real xi) { return std::exp(xi); });
  return record("exp", y, {x},
                pullback(y, x, [](ConstRow yi, ConstRow dyi, Row dxi) { dxi += dyi * yi; }));
}

Var log(const Var& x) {
  const Tensor y = map(x, [](real xi) { return std::log(xi); });
  return record("log", y, {x}, pullback(x.value(), x, [](ConstRow xi, ConstRow dyi, Row dxi) {
                  dxi += dyi / xi;
                }));
}

Var sigmoid(const Var& x) {
  Tensor y = Tensor::like(x.value());
  parallel_ranges(y.size(), kElementGrain, [&](Index begin, Index count) {
    for_each_vector(count, [&](Index i, Index n) {
      store(sigmoid_simd(load(x.value().data() + begin + i, n)), y.data() + begin + i, n);
    });
  });
  return record("sigmoid", y, {x}, pullback(y, x, [](ConstRow yi, ConstRow dyi, Row dxi) {
                  dxi += dyi * yi * (1 - yi);
                }));
}

Var rsqrt(const Var& x) {
  const Tensor y = map(x, [](real xi) { return 1 / std::sqrt(xi); });
  return record("rsqrt", y, {x}, pullback(y, x, [](ConstRow yi, ConstRow dyi, Row dxi) {
                  dxi += dyi * yi.cube() * real(-0.5);
                }));
}

Var softcap(const Var& x, double cap) {
  Tensor y = x.value().clone(), slopes = Tensor::like(y);
  const auto c = static_cast<real>(cap);
  parallel_ranges(y.size(), kElementGrain,
                  [&](Index i, Index n) { softcap(y.data() + i, n, c, slopes.data() + i); });
  return record("softcap", y, {x}, pullback(slopes, x, [](ConstRow slope, ConstRow dyi, Row dxi) {
                  dxi += slope * dyi;
                }));
}

Var affine(const Var& x, double scale, double shift) {
  const auto s = static_cast<real>(scale), c = static_cast<real>(shift);
  const Tensor y = map(x, [s, c](real xi) { return xi * s + c; });
  return record("affine", y, {x}, [dx = x.gradient(), s](const Tensor& dy) {
    Tensor out = dx.grad();
    parallel_ranges(out.size(), kElementGrain, [&](Index i, Index n) {
      Row(out.data() + i, n) += ConstRow(dy.data() + i, n) * s;
    });
  });
}

}  // namespace difftape
