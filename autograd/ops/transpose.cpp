// Exchange of two axes.
//   forward   y[..., j, ..., i, ...] = x[..., i, ..., j, ...]
//   backward  dx += dy with the same axes exchanged back
//   saves     nothing
//   fails     there is no such axis
#include "autograd/ops.h"
#include "core/error.h"
#include "core/parallel.h"

namespace difftape {

namespace {

/// target[i] = or += x at the position with axes a and b exchanged; target has the exchanged shape.
void exchange(const Tensor& x, int a, int b, Tensor& target, Accumulate accumulate) {
  const Shape &from = x.shape(), &to = target.shape();
  std::array<Index, Shape::kMaxRank> strides{};
  Index stride = 1;
  for (int axis = from.rank() - 1; axis >= 0; --axis) {
    strides[static_cast<size_t>(axis)] = stride;
    stride *= from[axis];
  }
  std::swap(strides[static_cast<size_t>(a)], strides[static_cast<size_t>(b)]);
  parallel_ranges(target.size(), kElementGrain, [&](Index begin, Index count) {
    for (Index i = begin; i < begin + count; ++i) {
      Index rest = i, source = 0;
      for (int axis = to.rank() - 1; axis >= 0; --axis) {
        source += rest % to[axis] * strides[static_cast<size_t>(axis)];
        rest /= to[axis];
      }
      const real value = x.data()[source];
      target.data()[i] = accumulate == Accumulate::yes ? target.data()[i] + value : value;
    }
  });
}

}  // namespace

Var transpose(const Var& x, int axis_a, int axis_b) {
  const Shape& shape = x.shape();
  const int a = axis_a < 0 ? axis_a + shape.rank() : axis_a;
  const int b = axis_b < 0 ? axis_b + shape.rank() : axis_b;
  require_shape(a >= 0 && b >= 0 && a < shape.rank() && b < shape.rank(), "transpose",
                "x is {}; it has no axes {} and {}", shape.str(), axis_a, axis_b);
  Tensor y = Tensor::empty(shape.with(a, shape[b]).with(b, shape[a]));
  exchange(x.value(), a, b, y, Accumulate::no);
  return record("transpose", y, {x}, [dx = x.gradient(), a, b](const Tensor& dy) {
    Gradient::Buffer buffer = dx.buffer();
    exchange(dy, a, b, buffer.grad, buffer.accumulate);
  });
}

}  // namespace difftape
