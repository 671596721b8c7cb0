// Cross-entropy of a linear classifier, mean over the N rows that are scored, in nats. With
// z = hidden W^T of a chunk of rows, never of all,
//   forward   y = mean_i(log(sum_v exp(z[i, v])) - z[i, target_i])
//   backward  with dz = (softmax(z) - onehot(target)) / N, computed during forward,
//             dhidden += dy dz W
//             dW      += dy dz^T hidden
//   saves     dz W (the shape of hidden, 0 in rows that are not scored) and dz^T hidden (that of W)
//   fails     inner sizes differ, as many targets as rows are not given, a target is neither in
//             [0, V) nor kIgnoreIndex, all are kIgnoreIndex
// Rows whose target is kIgnoreIndex are left out before anything is computed of them.
#include "autograd/ops.h"
#include "core/error.h"
#include "core/rows.h"
#include "core/simd.h"

namespace difftape {

namespace {

constexpr Index kChunkRows = 512;

/// z := exp(z - top), 0 rather than a denormal number; returns their sum.
real exp_of_differences(real* z, Index n, real top) {
  Simd total{};
  const Index whole = n / kSimdWidth * kSimdWidth;
  for (Index j = 0; j < whole; j += kSimdWidth) {
    const Simd e = exp_simd(load(z + j) - top);
    store(e, z + j);
    total += e;
  }
  real rest = sum(total);
  for (Index j = whole; j < n; ++j) {
    z[j] = exp_simd(broadcast(z[j] - top))[0];
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

/// Number of rows that are scored.
Index check_targets(std::span<const std::int32_t> targets, Index vocab) {
  Index ignored = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] == kIgnoreIndex) {
      ++ignored;
    } else if (targets[i] < 0 || targets[i] >= vocab) {
      throw DataError(fmt::format("cross_entropy: target {} of row {} is not in [0, {})",
                                  targets[i], i, vocab));
    }
  }
  const auto rows = static_cast<Index>(targets.size());
  if (ignored == rows) {
    throw DataError(fmt::format(
        "cross_entropy: all {} targets are ignored; need at least one that is scored", rows));
  }
  return rows - ignored;
}

/// Which rows are scored, in their order, and their targets.
struct Scored {
  std::vector<Index> rows;
  std::vector<std::int32_t> targets;
};
Scored scored_of(std::span<const std::int32_t> targets) {
  Scored scored;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] == kIgnoreIndex) continue;
    scored.rows.push_back(static_cast<Index>(i));
    scored.targets.push_back(targets[i]);
  }
  return scored;
}

/// Those rows of x, (N, C).
Tensor gathered(const Tensor& x, const std::vector<Index>& rows) {
  const Index width = x.shape().last();
  Tensor out = Tensor::empty({static_cast<Index>(rows.size()), width});
  serial([&] {
    for (size_t i = 0; i < rows.size(); ++i) {
      std::copy_n(x.row(rows[i]), width, out.row(static_cast<Index>(i)));
    }
  });
  return out;
}

/// The rows of x at their places in zeros of the given shape.
Tensor scattered(const Tensor& x, const std::vector<Index>& rows, const Shape& shape) {
  Tensor out = Tensor::zeros(shape);
  serial([&] {
    for (size_t i = 0; i < rows.size(); ++i) {
      std::copy_n(x.row(static_cast<Index>(i)), shape.last(), out.row(rows[i]));
    }
  });
  return out;
}

/// Mean loss, and its gradients if they are wanted.
struct LossAndGradients {
  double loss = 0;
  Tensor dhidden, dweight;
};
LossAndGradients mean_loss(const Tensor& hidden, const Tensor& weight,
                           std::span<const std::int32_t> targets, bool gradient,
                           Precision precision) {
  const Index rows = hidden.shape().rows(), width = hidden.shape().last();
  const Index vocab = weight.shape()[0];
  const Operand w = matrix(weight.data(), vocab, width);
  LossAndGradients result;
  if (gradient) {
    result.dhidden = Tensor::like(hidden);
    result.dweight = Tensor::like(weight);
  }
  Tensor logits = Tensor::empty({std::min(kChunkRows, rows), vocab});
  std::vector<double> losses(targets.size());
  for (Index begin = 0; begin < rows; begin += kChunkRows) {
    const Index count = std::min(kChunkRows, rows - begin);
    const Operand h = matrix(hidden.data() + begin * width, count, width);
    gemm(h, transpose(w), logits.data(), vocab, Accumulate::no, precision);
    rows_cross_entropy(logits, count, targets.data() + begin, rows, gradient,
                       losses.data() + begin);
    if (!gradient) continue;
    const Operand dz = matrix(logits.data(), count, vocab);
    gemm(dz, w, result.dhidden.data() + begin * width, width, Accumulate::no, precision);
    gemm(transpose(dz), h, result.dweight.data(), width,
         begin == 0 ? Accumulate::no : Accumulate::yes, precision);
  }
  for (double loss : losses) result.loss += loss;
  result.loss /= static_cast<double>(rows);
  return result;
}

/// gradient += dy saved.
void add_scaled(const Gradient& gradient, const Tensor& saved, real dy) {
  if (!gradient.requires_grad()) return;
  if (dy == 1) {
    gradient.add(saved);
    return;
  }
  Gradient::Buffer buffer = gradient.buffer();
  parallel_ranges(saved.size(), kElementGrain, [&](Index i, Index n) {
    store_or_add(Row(buffer.grad.data() + i, n), buffer.accumulate,
                 ConstRow(saved.data() + i, n) * dy);
  });
}

}  // namespace

Var cross_entropy(const Var& hidden, const Var& weight, std::span<const std::int32_t> targets) {
  const Shape &sh = hidden.shape(), &sw = weight.shape();
  const Index rows = sh.rows(), width = sh.last();
  require_shape(sw.rank() == 2 && width == sw[1] && static_cast<Index>(targets.size()) == rows,
                "cross_entropy", "hidden is {}, weight is {}, {} targets; need (N, C), (V, C), N",
                sh.str(), sw.str(), targets.size());
  const Index count = check_targets(targets, sw[0]);
  const bool gradient = hidden.gradient().requires_grad() || weight.gradient().requires_grad();
  const Precision precision = hidden.tape().precision();
  LossAndGradients result;
  if (count == rows) {
    result = mean_loss(hidden.value(), weight.value(), targets, gradient, precision);
  } else {
    const Scored scored = scored_of(targets);
    result = mean_loss(gathered(hidden.value(), scored.rows), weight.value(), scored.targets,
                       gradient, precision);
    if (gradient) result.dhidden = scattered(result.dhidden, scored.rows, sh);
  }
  return record("cross_entropy", Tensor::scalar(static_cast<real>(result.loss)), {hidden, weight},
                [dhidden = result.dhidden, dweight = result.dweight, to_hidden = hidden.gradient(),
                 to_weight = weight.gradient()](const Tensor& dy) {
                  add_scaled(to_hidden, dhidden, dy.item());
                  add_scaled(to_weight, dweight, dy.item());
                });
}

}  // namespace difftape
