#include "core/attention/rows.h"

#include <cmath>

namespace difftape::attention {

real Sink::probability(const SoftmaxStats& stats) const {
  return present ? std::exp(logit - stats.max) * stats.inverse_sum : 0;
}

void multiply(real* x, const real* factors, Index count) {
  for (Index j = 0; j < count; j += kSimdWidth) store(load(x + j) * load(factors + j), x + j);
}

SoftmaxStats softmax_numerators(real* scores, Index count, const Sink& sink) {
  Simd top = load(scores);
  for (Index j = kSimdWidth; j < count; j += kSimdWidth) {
    const Simd s = load(scores + j);
    top = s > top ? s : top;
  }
  const real max = sink.present ? std::max(largest(top), sink.logit) : largest(top);
  Simd total{};
  for (Index j = 0; j < count; j += kSimdWidth) {
    const Simd numerator = exp_simd(load(scores + j) - max);
    store(numerator, scores + j);
    total += numerator;
  }
  const real extra = sink.present ? std::exp(sink.logit - max) : 0;
  return {max, 1 / (sum(total) + extra)};
}

void normalise(real* numerators, Index count, const SoftmaxStats& stats, real coefficient) {
  const real factor = coefficient * stats.inverse_sum;
  for (Index j = 0; j < count; j += kSimdWidth)
    store(load(numerators + j) * factor, numerators + j);
}

void subtract_maps(real* first, const real* second, Index count, const SoftmaxStats& stats1,
                   const SoftmaxStats& stats2, real lambda) {
  const real ratio = lambda * (stats2.inverse_sum / stats1.inverse_sum);
  for (Index j = 0; j < count; j += kSimdWidth) {
    store((load(first + j) - load(second + j) * ratio) * stats1.inverse_sum, first + j);
  }
}

real recompute_softmax(real* scores, const real* dp, Index count, const SoftmaxStats& stats) {
  Simd total{};
  for (Index j = 0; j < count; j += kSimdWidth) {
    const Simd p = exp_simd(load(scores + j) - stats.max) * stats.inverse_sum;
    store(p, scores + j);
    total += p * load(dp + j);
  }
  return sum(total);
}

void softmax_backward(real* p, real* dp, Index count, real r, real factor, real coefficient) {
  for (Index j = 0; j < count; j += kSimdWidth) {
    const Simd probability = load(p + j);
    store(probability * factor * (load(dp + j) - r), p + j);
    store(probability * coefficient, dp + j);
  }
}

void differential_backward(real* p1, real* p2, real* dp, Index count, real r1, real r2, real scale,
                           real lambda) {
  const real factor = -lambda * scale;
  for (Index j = 0; j < count; j += kSimdWidth) {
    const Simd a1 = load(p1 + j), a2 = load(p2 + j), d = load(dp + j);
    store(a1 * scale * (d - r1), p1 + j);
    store(a2 * factor * (d - r2), p2 + j);
    store(a1 - a2 * lambda, dp + j);
  }
}

}  // namespace difftape::attention
