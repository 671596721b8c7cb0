// Root-mean-square norm over the last axis (Zhang & Sennrich 2019): with n its extent,
//   forward   r = 1 / sqrt(sum(x^2) / n + eps),  y = x r weight          each row
//   backward  dweight += dy x r                                          summed over the rows
//             dx += r (g - x r^2 dot(g, x) / n)  with g = dy weight      each row
//   saves     x, weight, r
//   fails     weight does not have one element per element of the last axis
#include "autograd/ops.h"
#include "core/error.h"
#include "core/rows.h"

namespace difftape {

namespace {

constexpr Index kRowsPerBlock = 64;  // rows whose part of dweight has one owner

struct Saved {
  Tensor x, weight, r;  // (..., C), (C), (rows)
};

/// Computes dx of rows [begin, begin + count), and their part of dweight.
void rows_backward(const Saved& saved, const Tensor& dy, Index begin, Index count,
                   Gradient::Buffer* dx, Row dweight) {
  const Index width = saved.weight.size();
  const ConstRow weight(saved.weight.data(), width);
  dweight.setZero();
  for (Index i = begin; i < begin + count; ++i) {
    const ConstRow xi(saved.x.data() + i * width, width), dyi(dy.data() + i * width, width);
    const real r = saved.r.data()[i];
    dweight += dyi * xi * r;
    if (dx == nullptr) continue;
    const real pull = r * r * r * sum_of(dyi * weight * xi) / static_cast<real>(width);
    store_or_add(Row(dx->grad.data() + i * width, width), dx->accumulate,
                 dyi * weight * r - xi * pull);
  }
}

}  // namespace

Var rms_norm(const Var& x, const Var& weight, double eps) {
  const Index width = x.shape().last(), rows = x.shape().rows();
  require_shape(weight.shape() == Shape{width} && width > 0, "rms_norm",
                "x is {}, weight is {}; need weight.shape == (x.shape[-1])", x.shape().str(),
                weight.shape().str());
  Tensor y = Tensor::like(x.value());
  Saved saved{x.value(), weight.value(), Tensor::empty({rows})};
  const ConstRow g(weight.value().data(), width);
  parallel_ranges(rows, row_grain(width), [&](Index begin, Index count) {
    for (Index i = begin; i < begin + count; ++i) {
      const ConstRow xi(saved.x.data() + i * width, width);
      const real mean = sum_of(xi.square()) / static_cast<real>(width);
      const real r = 1 / std::sqrt(mean + static_cast<real>(eps));
      saved.r.data()[i] = r;
      Row(y.data() + i * width, width) = xi * r * g;
    }
  });
  const auto pullback = [saved, dx = x.gradient(), dweight = weight.gradient()](const Tensor& dy) {
    const Index n = saved.weight.size(), count = saved.r.size();
    Gradient::Buffer to_x;
    if (dx.requires_grad()) to_x = dx.buffer();
    const Index blocks = ceil_div(count, kRowsPerBlock);
    Tensor shares = Tensor::empty({blocks, n});
    parallel_ranges(count, kRowsPerBlock, [&](Index begin, Index block_rows) {
      rows_backward(saved, dy, begin, block_rows, dx.requires_grad() ? &to_x : nullptr,
                    Row(shares.row(begin / kRowsPerBlock), n));
    });
    if (!dweight.requires_grad()) return;
    Tensor out = dweight.grad();
    serial([&] {
      for (Index block = 0; block < blocks; ++block)
        Row(out.data(), n) += ConstRow(shares.row(block), n);
    });
  };
  return record("rms_norm", y, {x, weight}, pullback);
}

}  // namespace difftape
