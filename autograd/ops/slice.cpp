// A range of one axis.
//   forward   y = x[..., begin : begin + count, ...]
//   backward  dx[..., begin : begin + count, ...] += dy
//   saves     nothing
//   fails     there is no such axis, or the range is not within it
#include "autograd/ops.h"
#include "core/error.h"
#include "core/rows.h"

namespace difftape {

namespace {
/// x as (outer, extent, inner): for each outer index a run of count * inner elements is taken.
struct Runs {
  Index outer, length, pitch, offset;
};
Runs runs_of(const Shape& shape, int axis, Index begin, Index count) {
  Index outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= shape[i];
  for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  return {outer, count * inner, shape[axis] * inner, begin * inner};
}
}  // namespace

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

}  // namespace difftape
