// Root-mean-square norm over the last axis (Zhang & Sennrich 2019): with n its extent,
//   forward   r = 1 / sqrt(sum(x^2) / n + eps),  y = x r gain          each row
//   backward  dgain += dy x r                                          summed over the rows
//             dx += r (g - x r^2 dot(g, x) / n)  with g = dy gain      each row
//   saves     x, gain, r
//   fails     gain is not one number for each element of the last axis
#include "autograd/ops.h"
#include "core/error.h"
#include "core/rows.h"

namespace difftape {

namespace {

constexpr Index kRowsPerBlock = 64;  // rows whose part of dgain is summed by one owner

struct Saved {
  Tensor x, gain, r;  // (..., C), (C), (rows)
};

/// dx of rows [begin, begin + count), and their share of dgain (overwritten).
void rows_backward(const Saved& saved, const Tensor& dy, Index begin, Index count,
                   const Gradient::Slot* dx, Row dgain) {
  const Index width = saved.gain.size();
  const ConstRow gain(saved.gain.data(), width);
  dgain.setZero();
  for (Index i = begin; i < begin + count; ++i) {
    const ConstRow xi(saved.x.data() + i * width, width), dyi(dy.data() + i * width, width);
    const real r = saved.r.data()[i];
    dgain += dyi * xi * r;
    if (dx == nullptr) continue;
    const real pull = r * r * r * (dyi * gain * xi).sum() / static_cast<real>(width);
    put(Row(const_cast<real*>(dx->out.data()) + i * width, width), dx->into,
        dyi * gain * r - xi * pull);
  }
}

}  // namespace

Var rms_norm(const Var& x, const Var& gain, double eps) {
  const Index width = x.shape().last(), rows = x.shape().rows();
  require_shape(gain.shape() == Shape{width} && width > 0, "rms_norm",
                "x is {}, gain is {}; need gain.shape == (x.shape[-1])", x.shape().str(),
                gain.shape().str());
  Tensor y = Tensor::like(x.value());
  Saved saved{x.value(), gain.value(), Tensor::empty({rows})};
  const ConstRow g(gain.value().data(), width);
  parallel_ranges(rows, row_grain(width), [&](Index begin, Index count) {
    for (Index i = begin; i < begin + count; ++i) {
      const ConstRow xi(saved.x.data() + i * width, width);
      const real mean = xi.square().sum() / static_cast<real>(width);
      const real r = 1 / std::sqrt(mean + static_cast<real>(eps));
      saved.r.data()[i] = r;
      Row(y.data() + i * width, width) = xi * r * g;
    }
  });
  const auto pullback = [saved, dx = x.gradient(), dgain = gain.gradient()](const Tensor& dy) {
    const Index n = saved.gain.size(), count = saved.r.size();
    Gradient::Slot to_x;
    if (dx.wanted()) to_x = dx.slot();
    const Index blocks = (count + kRowsPerBlock - 1) / kRowsPerBlock;
    Tensor shares = Tensor::empty({blocks, n});
    parallel_ranges(count, kRowsPerBlock, [&](Index begin, Index block_rows) {
      rows_backward(saved, dy, begin, block_rows, dx.wanted() ? &to_x : nullptr,
                    Row(shares.row(begin / kRowsPerBlock), n));
    });
    if (!dgain.wanted()) return;
    Tensor out = dgain.sum();
    serial([&] {
      for (Index block = 0; block < blocks; ++block)
        Row(out.data(), n) += ConstRow(shares.row(block), n);
    });
  };
  return record("rms_norm", y, {x, gain}, pullback);
}

}  // namespace difftape
