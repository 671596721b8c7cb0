// Cross-entropy of a linear classifier, mean over N rows, in nats. With z = hidden W^T of a chunk
// of rows, never of all,
//   forward   y = mean_i(log(sum_v exp(z[i, v])) - z[i, target_i])
//   backward  with dz = (softmax(z) - onehot(target)) / N, computed during forward,
//             dhidden += dy dz W
//             dW      += dy dz^T hidden
//   saves     dz W (the shape of hidden) and dz^T hidden (the shape of W)
//   fails     inner sizes differ, as many targets as rows are not given, a target is not in [0, V)
#include "autograd/ops.h"
#include "core/error.h"
#include "core/lanes.h"
#include "core/rows.h"

namespace difftape {

namespace {

constexpr Index kChunkRows = 512;

/// z := exp(z - top), 0 rather than a denormal number; returns their sum.
real exp_of_differences(real* z, Index n, real top) {
  Lanes total{};
  const Index whole = n / kLanes * kLanes;
  for (Index j = 0; j < whole; j += kLanes) {
    const Lanes e = exp_lanes(load(z + j) - top);
    store(e, z + j);
    total += e;
  }
  real rest = sum(total);
  for (Index j = whole; j < n; ++j) {
    z[j] = exp_lanes(lanes(z[j] - top))[0];
    rest += z[j];
  }
  return rest;
}

/// Losses of a chunk; logits (count, V) become dz = (softmax - onehot) / total if `gradient`.
void rows_cross_entropy(Tensor& logits, Index count, const std::int32_t* targets, Index total,
                        bool gradient, double* losses) {
  const Index vocab = logits.shape()[1];
  parallel_ranges(count, row_grain(vocab), [&](Index begin, Index rows) {
    for (Index i = begin; i < begin + rows; ++i) {
      Row z(logits.row(i), vocab);
      const real top = z.maxCoeff(), at_target = z[targets[i]];
      const real sum = exp_of_differences(logits.row(i), vocab, top);
      losses[i] = std::log(static_cast<double>(sum)) + static_cast<double>(top) -
                  static_cast<double>(at_target);
      if (!gradient) continue;
      z *= 1 / (sum * static_cast<real>(total));
      z[targets[i]] -= 1 / static_cast<real>(total);
    }
  });
}

void check_targets(std::span<const std::int32_t> targets, Index vocab) {
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] < 0 || targets[i] >= vocab) {
      throw DataError(fmt::format("cross_entropy: target {} of row {} is not in [0, {})",
                                  targets[i], i, vocab));
    }
  }
}

/// slot += dy saved.
void add_scaled(const Gradient& gradient, const Tensor& saved, real dy) {
  if (!gradient.wanted()) return;
  if (dy == 1) {
    gradient.add(saved);
    return;
  }
  const Gradient::Slot slot = gradient.slot();
  Tensor out = slot.out;
  parallel_ranges(out.size(), kElementGrain, [&](Index i, Index n) {
    put(Row(out.data() + i, n), slot.into, ConstRow(saved.data() + i, n) * dy);
  });
}

}  // namespace

Var cross_entropy(const Var& hidden, const Var& weight, std::span<const std::int32_t> targets) {
  const Shape &sh = hidden.shape(), &sw = weight.shape();
  const Index rows = sh.rows(), width = sh.last();
  require_shape(sw.rank() == 2 && width == sw[1] && static_cast<Index>(targets.size()) == rows,
                "cross_entropy", "hidden is {}, weight is {}, {} targets; need (N, C), (V, C), N",
                sh.str(), sw.str(), targets.size());
  const Index vocab = sw[0];
  check_targets(targets, vocab);
  const Operand w = matrix(weight.value().data(), vocab, width);
  const Precision precision = hidden.tape().precision();
  const bool gradient = hidden.gradient().wanted() || weight.gradient().wanted();
  Tensor dhidden, dweight;
  if (gradient) {
    dhidden = Tensor::like(hidden.value());
    dweight = Tensor::like(weight.value());
  }
  Tensor logits = Tensor::empty({std::min(kChunkRows, rows), vocab});
  std::vector<double> losses(targets.size());
  for (Index begin = 0; begin < rows; begin += kChunkRows) {
    const Index count = std::min(kChunkRows, rows - begin);
    const Operand h = matrix(hidden.value().data() + begin * width, count, width);
    gemm(h, transpose(w), logits.data(), vocab, Into::overwrite, precision);
    rows_cross_entropy(logits, count, targets.data() + begin, rows, gradient,
                       losses.data() + begin);
    if (!gradient) continue;
    const Operand dz = matrix(logits.data(), count, vocab);
    gemm(dz, w, dhidden.data() + begin * width, width, Into::overwrite, precision);
    gemm(transpose(dz), h, dweight.data(), width, begin == 0 ? Into::overwrite : Into::add,
         precision);
  }
  double total = 0;
  for (double loss : losses) total += loss;
  return record("cross_entropy",
                Tensor::scalar(static_cast<real>(total / static_cast<double>(rows))),
                {hidden, weight},
                [dhidden, dweight, to_hidden = hidden.gradient(),
                 to_weight = weight.gradient()](const Tensor& dy) {
                  add_scaled(to_hidden, dhidden, dy.item());
                  add_scaled(to_weight, dweight, dy.item());
                });
}

}  // namespace difftape
