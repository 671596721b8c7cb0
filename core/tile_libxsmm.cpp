#include "core/tile.h"

#ifdef DIFFTAPE_WITH_LIBXSMM

#include <libxsmm.h>

#include "core/error.h"

namespace difftape::tile {

namespace {

// libxsmm is column-major: its (m, n, k, A, B) is our (n, m, k, B, A), and nothing is moved.
auto generate(const Product& p) {
  const auto m = static_cast<int>(p.n), n = static_cast<int>(p.m), k = static_cast<int>(p.k);
  const auto lda = static_cast<int>(p.b_stride), ldb = static_cast<int>(p.a_stride);
  const auto ldc = static_cast<int>(p.c_stride);
  const real alpha = 1, beta = p.add ? 1 : 0;
  const int flags = p.a_transposed ? LIBXSMM_GEMM_FLAG_TRANS_B : LIBXSMM_GEMM_FLAG_NONE;
  if constexpr (sizeof(real) == 4) {
    return libxsmm_smmdispatch(m, n, k, &lda, &ldb, &ldc, reinterpret_cast<const float*>(&alpha),
                               reinterpret_cast<const float*>(&beta), &flags, nullptr);
  } else {
    return libxsmm_dmmdispatch(m, n, k, &lda, &ldb, &ldc, reinterpret_cast<const double*>(&alpha),
                               reinterpret_cast<const double*>(&beta), &flags, nullptr);
  }
}

void multiply(const Kernel& kernel, const real* a, const real* b, real* c) {
  using Generated = decltype(generate(kernel.shape));
  using Argument = std::conditional_t<sizeof(real) == 4, float, double>;
  reinterpret_cast<Generated>(kernel.generated)(reinterpret_cast<const Argument*>(b),
                                                reinterpret_cast<const Argument*>(a),
                                                reinterpret_cast<Argument*>(c));
}

Kernel kernel(const Product& p) {
  const auto generated = generate(p);
  if (generated == nullptr) return eigen_engine()->kernel(p);
  return {p, multiply, reinterpret_cast<void (*)()>(generated)};
}

}  // namespace

const Engine* libxsmm_engine() {
  static const std::string name = [] {
    libxsmm_init();
    const char* target = libxsmm_get_target_arch();
    return fmt::format("libxsmm {} ({})", LIBXSMM_VERSION, target ? target : "no target");
  }();
  static const Engine engine{name.c_str(), kernel};
  static const bool usable = generate({32, 32, 32, 32, 32, 32, false, false}) != nullptr;
  return usable ? &engine : nullptr;
}

}  // namespace difftape::tile

#else

namespace difftape::tile {
const Engine* libxsmm_engine() { return nullptr; }
}  // namespace difftape::tile

#endif
