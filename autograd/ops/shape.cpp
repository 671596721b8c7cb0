// Reshaping, slicing and transposition.
//               forward                                    backward
//   reshape     y = x, sharing the memory                  dx += dy
//   slice       y = x[..., begin : begin + count, ...]     dx of that range += dy
//   transpose   y[..., j, ..., i, ...] = x[..., i, ..., j, ...]
//                                                          dx += dy, axes exchanged back
//   saves       nothing
//   fails       reshape: sizes differ; slice: no such axis, or the range exceeds it; transpose:
//               no such axis
#include "autograd/ops.h"
#include "core/error.h"
#include "core/rows.h"

namespace difftape {

namespace {

/// x as (outer, extent, inner): each outer index has a run of count * inner elements.
struct Runs {
  Index outer, length, pitch, offset;
};
Runs runs_of(const Shape& shape, int axis, Index begin, Index count) {
  Index outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= shape[i];
  for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  return {outer, count * inner, shape[axis] * inner, begin * inner};
}

/// target = or += x with axes a and b exchanged.
void exchange(const Tensor& x, int a, int b, Tensor& target, Accumulate accumulate) {
  const Shape &from = x.shape(), &to = target.shape();
  std::array<Index, Shape::kMaxRank> strides{};
  Index stride = 1;
  for (int axis = from.rank() - 1; axis >= 0; --axis) {
    strides[axis] = stride;
    stride *= from[axis];
  }
  std::swap(strides[a], strides[b]);
  parallel_ranges(target.size(), kElementGrain, [&](Index begin, Index count) {
    for (Index i = begin; i < begin + count; ++i) {
      Index rest = i, source = 0;
      for (int axis = to.rank() - 1; axis >= 0; --axis) {
        source += rest % to[axis] * strides[axis];
        rest /= to[axis];
      }
      const real value = x.data()[source];
      target.data()[i] = accumulate == Accumulate::yes ? target.data()[i] + value : value;
    }
  });
}

}  // namespace

Var reshape(const Var& x, const Shape& shape) {
  return record("reshape", x.value().reshaped(shape), {x},
                [dx = x.gradient()](const Tensor& dy) { dx.add(dy); });
}

Var slice(const Var& x, int axis, Index begin, Index count) {
  const Shape& shape = x.shape();
  const int at = axis < 0 ? axis + shape.rank() : axis;
  require_shape(at >= 0 && at < shape.rank(), "slice", "x is {}; it has no axis {}", shape.str(),
                axis);
  require_shape(begin >= 0 && count >= 0 && begin + count <= shape[at], "slice",
                "[{}, {}) is not within axis {} of {}", begin, begin + count, axis, shape.str());
  const Runs runs = runs_of(shape, at, begin, count);
  Tensor y = Tensor::empty(shape.with(at, count));
  serial([&] {
    for (Index i = 0; i < runs.outer; ++i) {
      std::copy_n(x.value().data() + i * runs.pitch + runs.offset, runs.length,
                  y.data() + i * runs.length);
    }
  });
  return record("slice", y, {x}, [dx = x.gradient(), runs](const Tensor& dy) {
    Tensor out = dx.grad();
    serial([&] {
      for (Index i = 0; i < runs.outer; ++i) {
        Row(out.data() + i * runs.pitch + runs.offset, runs.length) +=
            ConstRow(dy.data() + i * runs.length, runs.length);
      }
    });
  });
}

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
