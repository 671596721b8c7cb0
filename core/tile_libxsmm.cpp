#include "core/tile.h"

#ifdef DIFFTAPE_WITH_LIBXSMM

#include <libxsmm.h>

#include <array>

#include "core/error.h"
#include "core/simd.h"

namespace difftape::tile {

namespace {

// libxsmm is column-major: its (m, n, k, A, B) is our (n, m, k, B, A).
struct Arguments {
  int m, n, k, lda, ldb, ldc;
  real alpha = 1, beta;
  explicit Arguments(const Product& p)
      : m(static_cast<int>(p.n)),
        n(static_cast<int>(p.m)),
        k(static_cast<int>(p.k)),
        lda(static_cast<int>(p.b_stride)),
        ldb(static_cast<int>(p.a_stride)),
        ldc(static_cast<int>(p.c_stride)),
        beta(p.add ? 1 : 0) {}
};

auto generate(const Product& p) {
  const Arguments x(p);
  const int flags = p.a_transposed ? LIBXSMM_GEMM_FLAG_TRANS_B : LIBXSMM_GEMM_FLAG_NONE;
  if constexpr (sizeof(real) == 4) {
    return libxsmm_smmdispatch(x.m, x.n, x.k, &x.lda, &x.ldb, &x.ldc,
                               reinterpret_cast<const float*>(&x.alpha),
                               reinterpret_cast<const float*>(&x.beta), &flags, nullptr);
  } else {
    return libxsmm_dmmdispatch(x.m, x.n, x.k, &x.lda, &x.ldb, &x.ldc,
                               reinterpret_cast<const double*>(&x.alpha),
                               reinterpret_cast<const double*>(&x.beta), &flags, nullptr);
  }
}

/// Calls generated code of type Function.
template <class Function, class Number>
void call(const Kernel& kernel, const real* a, const real* b, real* c) {
  reinterpret_cast<Function>(kernel.generated)(reinterpret_cast<const Number*>(b),
                                               reinterpret_cast<const Number*>(a),
                                               reinterpret_cast<Number*>(c));
}

/// Returns whether our own loops are faster: with AVX2, libxsmm is slow at the last columns of a
/// tile unless they fill three or four registers (measured in f32).
bool prefers_portable(const Product& p) {
  static const bool avx2 = libxsmm_get_target_archid() == LIBXSMM_X86_AVX2;
  constexpr Index kLanes = detail::kLanes, kBlock = 4 * kLanes;
  if (!avx2 || sizeof(real) != 4 || detail::kRegisterBytes != 32 || p.n < kLanes) return false;
  return p.n % kBlock != 0 && p.n % kBlock != 3 * kLanes;
}

Kernel new_kernel(const Product& p) {
  const auto generated = prefers_portable(p) ? nullptr : generate(p);
  if (generated == nullptr) return portable_backend()->kernel(p);
  using Number = std::conditional_t<sizeof(real) == 4, float, double>;
  return {p, call<decltype(generate(p)), Number>, reinterpret_cast<void*>(generated)};
}

/// Returns a kernel from a cache per thread: the look-up of libxsmm takes as long as a product of
/// attention with heads of 16.
const Kernel& kernel(const Product& p) {
  thread_local std::array<Kernel, 256> known{};
  Kernel& place = known[p.hash() >> 56];
  if (place.run == nullptr || !(place.shape == p)) place = new_kernel(p);
  return place;
}

const char* library_name() {
  static const std::string name = [] {
    libxsmm_init();
    const char* target = libxsmm_get_target_arch();
    return fmt::format("libxsmm {} ({})", LIBXSMM_VERSION, target ? target : "no target");
  }();
  return name.c_str();
}

}  // namespace

const Backend* libxsmm_backend() {
  static const Backend backend{library_name(), [](const Product& p) { return kernel(p); }};
  static const bool usable = generate({32, 32, 32, 32, 32, 32, false, false}) != nullptr;
  return usable ? &backend : nullptr;
}

}  // namespace difftape::tile

#else

namespace difftape::tile {
const Backend* libxsmm_backend() { return nullptr; }
}  // namespace difftape::tile

#endif
