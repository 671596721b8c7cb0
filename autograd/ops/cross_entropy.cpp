// Mean cross-entropy of a linear classifier over the N scored rows, in nats. Logits are kept for
// one chunk of rows only. With z = hidden W^T,
//   forward   c[i, v] = cap tanh(z[i, v] / cap), or z[i, v] without softcap
//             l_i = log(sum_v exp(c[i, v]))
//             y = mean_i(l_i - c[i, target_i]) + z_loss mean_i(l_i^2)
//   backward  with dz = ((1 + 2 z_loss l) softmax(c) - onehot(target)) / N, times the slope
//             1 - tanh^2(z / cap) of a softcap, computed during forward,
//             dhidden += dy dz W
//             dW      += dy dz^T hidden
//   saves     dz W (shape of hidden, 0 in rows that are not scored) and dz^T hidden (shape of W)
//   fails     inner sizes differ; the number of targets is not the number of rows; a target is
//             neither in [0, V) nor kIgnoreIndex; all are kIgnoreIndex
// Rows with target kIgnoreIndex are removed before anything is computed.
#include "autograd/ops.h"
#include "core/error.h"
#include "core/gemm.h"
#include "core/rows.h"
#include "core/simd_functions.h"
#include "core/softcap.h"

namespace difftape {

namespace {

constexpr Index kChunkRows = 512;

/// Settings and buffers of one call.
struct RowsOf {
  LossOptions options;
  Index total;      ///< scored rows of all chunks
  bool gradient;    ///< replaces logits by their gradient
  Tensor slopes{};  ///< (threads, V), for a softcap with gradient
};

/// The loss terms of one row, or their means.
struct RowTerms {
  double cross_entropy = 0, squared_log_z = 0;
};

/// Returns the terms of one row. With `gradient`, replaces its logits by
/// ((1 + 2 z_loss l) softmax - onehot) slope / total.
RowTerms row_cross_entropy(RowsOf& of, real* logits, Index vocab, Index target) {
  real* slopes = of.slopes.allocated() ? of.slopes.row(thread_index()) : nullptr;
  if (of.options.softcap > 0) softcap(logits, vocab, static_cast<real>(of.options.softcap), slopes);
  Row z(logits, vocab);
  const real top = z.maxCoeff(), at_target = z[target];
  const real sum = exp_of_differences(logits, vocab, top);
  const double log_z = std::log(static_cast<double>(sum)) + static_cast<double>(top);
  const RowTerms terms{log_z - static_cast<double>(at_target), log_z * log_z};
  if (!of.gradient) return terms;
  real scale = 1 / (sum * static_cast<real>(of.total));
  if (of.options.z_loss > 0) scale *= static_cast<real>(1 + 2 * of.options.z_loss * log_z);
  z *= scale;
  z[target] -= 1 / static_cast<real>(of.total);
  if (slopes) z *= ConstRow(slopes, vocab);
  return terms;
}

/// Computes the terms of a chunk of rows, logits (count, V).
void rows_cross_entropy(RowsOf& of, Tensor& logits, Index count, const std::int32_t* targets,
                        RowTerms* terms) {
  const Index vocab = logits.shape()[1];
  parallel_ranges(count, row_grain(vocab), [&](Index begin, Index rows) {
    for (Index i = begin; i < begin + rows; ++i) {
      terms[i] = row_cross_entropy(of, logits.row(i), vocab, targets[i]);
    }
  });
}

/// The scored rows and their targets, in order.
struct Scored {
  std::vector<Index> rows;
  std::vector<std::int32_t> targets;
};
Scored scored_of(std::span<const std::int32_t> targets, Index vocab) {
  Scored scored;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] == kIgnoreIndex) continue;
    if (targets[i] < 0 || targets[i] >= vocab) {
      throw DataError(fmt::format("cross_entropy: target {} of row {} is not in [0, {})",
                                  targets[i], i, vocab));
    }
    scored.rows.push_back(i);
    scored.targets.push_back(targets[i]);
  }
  if (scored.rows.empty()) {
    throw DataError(
        fmt::format("cross_entropy: all {} targets are ignored; need at least one that is scored",
                    targets.size()));
  }
  return scored;
}

/// Returns `rows` of x, (N, C), or x itself if these are all.
Tensor gathered(const Tensor& x, const std::vector<Index>& rows) {
  if (std::ssize(rows) == x.shape().rows()) return x;
  const Index width = x.shape().last();
  Tensor out = Tensor::empty({std::ssize(rows), width});
  serial([&] {
    for (size_t i = 0; i < rows.size(); ++i) std::copy_n(x.row(rows[i]), width, out.row(i));
  });
  return out;
}

/// Returns zeros of `shape` with x in `rows`, or x itself if these are all.
Tensor scattered(const Tensor& x, const std::vector<Index>& rows, const Shape& shape) {
  if (x.size() == shape.size()) return x;
  Tensor out = Tensor::zeros(shape);
  serial([&] {
    for (size_t i = 0; i < rows.size(); ++i) std::copy_n(x.row(i), shape.last(), out.row(rows[i]));
  });
  return out;
}

/// Mean terms, terms of each row, and gradients if wanted.
struct LossAndGradients {
  RowTerms terms{};
  std::vector<RowTerms> of_rows{};
  Tensor dhidden{}, dweight{};
};
LossAndGradients mean_loss(const Tensor& hidden, const Tensor& weight,
                           std::span<const std::int32_t> targets, RowsOf of, Precision precision) {
  const bool gradient = of.gradient;
  const Index rows = hidden.shape().rows(), width = hidden.shape().last();
  const Index vocab = weight.shape()[0];
  const Operand w = matrix(weight.data(), vocab, width);
  LossAndGradients result;
  if (gradient) {
    result.dhidden = Tensor::like(hidden);
    result.dweight = Tensor::like(weight);
  }
  Tensor logits = Tensor::empty({std::min(kChunkRows, rows), vocab});
  if (gradient && of.options.softcap > 0) of.slopes = Tensor::empty({num_threads(), vocab});
  std::vector<RowTerms>& terms = result.of_rows;
  terms.resize(targets.size());
  for (Index begin = 0; begin < rows; begin += kChunkRows) {
    const Index count = std::min(kChunkRows, rows - begin);
    const Operand h = matrix(hidden.data() + begin * width, count, width);
    gemm(h, transpose(w), logits.data(), vocab, Accumulate::no, precision);
    rows_cross_entropy(of, logits, count, targets.data() + begin, terms.data() + begin);
    if (!gradient) continue;
    const Operand dz = matrix(logits.data(), count, vocab);
    gemm(dz, w, result.dhidden.data() + begin * width, width, Accumulate::no, precision);
    gemm(transpose(dz), h, result.dweight.data(), width,
         begin == 0 ? Accumulate::no : Accumulate::yes, precision);
  }
  for (const RowTerms& row : terms) {
    result.terms.cross_entropy += row.cross_entropy;
    result.terms.squared_log_z += row.squared_log_z;
  }
  result.terms.cross_entropy /= static_cast<double>(rows);
  result.terms.squared_log_z /= static_cast<double>(rows);
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

Var cross_entropy(const Var& hidden, const Var& weight, std::span<const std::int32_t> targets,
                  const LossOptions& options, LossTerms* terms) {
  const Shape &sh = hidden.shape(), &sw = weight.shape();
  const Index rows = sh.rows(), width = sh.last();
  require_shape(sw.rank() == 2 && width == sw[1] && std::ssize(targets) == rows, "cross_entropy",
                "hidden is {}, weight is {}, {} targets; need (N, C), (V, C), N", sh.str(),
                sw.str(), targets.size());
  const Scored scored = scored_of(targets, sw[0]);
  const bool gradient = hidden.gradient().requires_grad() || weight.gradient().requires_grad();
  LossAndGradients result =
      mean_loss(gathered(hidden.value(), scored.rows), weight.value(), scored.targets,
                {options, std::ssize(scored.rows), gradient}, hidden.tape().precision());
  if (gradient) result.dhidden = scattered(result.dhidden, scored.rows, sh);
  const RowTerms& mean = result.terms;
  if (terms) {
    *terms = {static_cast<real>(mean.cross_entropy), mean.squared_log_z, std::vector<double>(rows)};
    for (size_t i = 0; i < scored.rows.size(); ++i) {
      terms->row_losses[scored.rows[i]] = result.of_rows[i].cross_entropy;
    }
  }
  const double loss =
      mean.cross_entropy + (options.z_loss > 0 ? options.z_loss * mean.squared_log_z : 0);
  return record("cross_entropy", Tensor::scalar(static_cast<real>(loss)), {hidden, weight},
                [dhidden = result.dhidden, dweight = result.dweight, to_hidden = hidden.gradient(),
                 to_weight = weight.gradient()](const Tensor& dy) {
                  add_scaled(to_hidden, dhidden, dy.item());
                  add_scaled(to_weight, dweight, dy.item());
                });
}

}  // namespace difftape
