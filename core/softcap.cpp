#include "core/softcap.h"

#include <algorithm>

#include "core/simd_functions.h"

namespace difftape {

namespace {

/// One register of numbers.
void softcap_simd(real* x, real cap, real* slopes) {
  const Simd t = tanh_simd(load(x) / cap);
  store(t * cap, x);
  if (slopes) store(fma(-t, t, 1), slopes);
}

}  // namespace

void softcap(real* x, Index n, real cap, real* slopes) {
  const Index whole = n / kSimdWidth * kSimdWidth, rest = n - whole;
  for (Index j = 0; j < whole; j += kSimdWidth)
    softcap_simd(x + j, cap, slopes ? slopes + j : nullptr);
  if (rest == 0) return;
  real last[kSimdWidth] = {}, last_slopes[kSimdWidth];
  std::copy_n(x + whole, rest, last);
  softcap_simd(last, cap, last_slopes);
  std::copy_n(last, rest, x + whole);
  if (slopes) std::copy_n(last_slopes, rest, slopes + whole);
}

}  // namespace difftape
