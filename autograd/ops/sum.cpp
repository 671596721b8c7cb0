// Sum of all elements, and sum over the last axis.
//   forward   y = sum(x)            each row, or the whole tensor
//   backward  dx += dy              repeated
//   saves     nothing
//   fails     never
#include "autograd/ops.h"
#include "core/rows.h"

namespace difftape {

namespace {
Tape::Pullback repeat(const Gradient& dx) {
  return [dx](const Tensor& dy) {
    Tensor out = dx.grad();
    const Index width = out.size() / std::max<Index>(1, dy.size());
    parallel_ranges(dy.size(), row_grain(width), [&](Index begin, Index count) {
      for (Index i = begin; i < begin + count; ++i) {
        Row(out.data() + i * width, width) += dy.data()[i];
      }
    });
  };
}
}  // namespace

Var sum(const Var& x) {
  const double total = parallel_sum(x.value().size(), kElementGrain, [&](Index i, Index n) {
    return ConstRow(x.value().data() + i, n).cast<double>().sum();
  });
  return record("sum", Tensor::scalar(static_cast<real>(total)), {x}, repeat(x.gradient()));
}

Var sum_last(const Var& x) {
  Tensor y = Tensor::empty(x.shape().rank() == 0 ? Shape{} : x.shape().with(-1, 1));
  for_each_row(x.value(), y, [](ConstRow xi, Row yi) { yi[0] = xi.sum(); });
  return record("sum_last", y, {x}, repeat(x.gradient()));
}

}  // namespace difftape
