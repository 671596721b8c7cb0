#include "core/softcap.h"

#include "core/simd_functions.h"

namespace difftape {

void softcap(real* x, Index n, real cap, real* slopes) {
  for_each_vector(n, [&](Index i, Index count) {
    const Simd t = tanh_simd(load(x + i, count) / cap);
    store(t * cap, x + i, count);
    if (slopes) store(fma(-t, t, 1), slopes + i, count);
  });
}

}  // namespace difftape
