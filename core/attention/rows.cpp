#include "core/attention/rows.h"

#include <cmath>

#include "core/simd_functions.h"

namespace difftape::attention {

real Sink::probability(const SoftmaxStats& stats) const {
  return present ? std::exp(logit - stats.max) * stats.inverse_sum : 0;
}

SoftmaxStats softmax_numerators(real* scores, Index count, const Sink& sink) {
  Simd top = load(scores);
  for (Index j = kSimdWidth; j < count; j += kSimdWidth) {
    const Simd s = load(scores + j);
    top = select(s > top, s, top);
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
    store(fma(-load(second + j), ratio, load(first + j)) * stats1.inverse_sum, first + j);
  }
}

}  // namespace difftape::attention
