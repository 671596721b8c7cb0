#include "core/attention/lanes.h"

#include "core/simd_functions.h"

namespace difftape::attention {

void multiply(real* x, const real* factors, Index keys) {
  for (Index at = 0; at < keys * kBlockRows; at += kBlockRows) {
    store(load(x + at) * load(factors + at), x + at);
  }
}

Simd largest_scores(const real* scores, Index keys, const Simd& so_far) {
  const auto larger = [](const Simd& a, const Simd& b) { return select(a > b, a, b); };
  Simd even = so_far, odd = so_far;  // two independent chains hide latency
  Index key = 0;
  for (; key + 2 <= keys; key += 2) {
    even = larger(load(scores + key * kBlockRows), even);
    odd = larger(load(scores + (key + 1) * kBlockRows), odd);
  }
  if (key < keys) even = larger(load(scores + key * kBlockRows), even);
  return larger(odd, even);
}

Simd softmax_numerators(real* scores, Index keys, const Simd& max, const Simd& so_far) {
  const Simd top = max;
  Simd total = so_far;
  for (Index at = 0; at < keys * kBlockRows; at += kBlockRows) {
    const Simd numerator = exp_simd(load(scores + at) - top);
    store(numerator, scores + at);
    total += numerator;
  }
  return Simd(total);  // copied: a returned local would live in memory during the loop
}

void scale(real* x, Index keys, const Simd& factor) {
  const Simd by = factor;
  for (Index at = 0; at < keys * kBlockRows; at += kBlockRows) store(load(x + at) * by, x + at);
}

void subtract(real* first, const real* second, Index keys, const Simd& ratio) {
  const Simd weight = ratio;
  for (Index at = 0; at < keys * kBlockRows; at += kBlockRows) {
    store(fma(-load(second + at), weight, load(first + at)), first + at);
  }
}

Simd recompute_softmax(real* scores, const real* dp, Index keys, const LaneStats& stats,
                       const Simd& so_far) {
  const Simd max = stats.max, inverse_sum = stats.inverse_sum;
  Simd total = so_far;
  for (Index at = 0; at < keys * kBlockRows; at += kBlockRows) {
    const Simd p = exp_simd(load(scores + at) - max) * inverse_sum;
    store(p, scores + at);
    total = fma(p, load(dp + at), total);
  }
  return Simd(total);
}

void softmax_backward(real* p, real* dp, Index keys, const Simd& r, const Simd& factor,
                      const Simd& coefficient) {
  const Simd sum = r, of_scores = factor, of_values = coefficient;
  for (Index at = 0; at < keys * kBlockRows; at += kBlockRows) {
    const Simd probability = load(p + at);
    store(probability * of_scores * (load(dp + at) - sum), p + at);
    store(probability * of_values, dp + at);
  }
}

void differential_backward(real* p1, real* p2, real* dp, Index keys, const Simd& r1, const Simd& r2,
                           real scale, const Simd& lambda) {
  const Simd sum1 = r1, sum2 = r2, weight = lambda, factor = -lambda * scale;
  for (Index at = 0; at < keys * kBlockRows; at += kBlockRows) {
    const Simd a1 = load(p1 + at), a2 = load(p2 + at), d = load(dp + at);
    store(a1 * scale * (d - sum1), p1 + at);
    store(a2 * factor * (d - sum2), p2 + at);
    store(fma(-a2, weight, a1), dp + at);
  }
}

}  // namespace difftape::attention
