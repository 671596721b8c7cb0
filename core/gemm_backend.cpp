// The choice of a backend, and plain loops for bfloat16.
#include "core/gemm_backend.h"

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "core/bf16.h"
#include "core/error.h"
#include "core/platform.h"
#include "core/simd.h"
#include "core/tile.h"

namespace difftape {

namespace tile {

namespace {

/// A tile of bfloat16 in plain loops.
void multiply_bf16(const Kernel& kernel, const void* a, const void* b, real* c) {
  const Product& p = kernel.shape;
  const auto *left = static_cast<const std::uint16_t*>(a),
             *right = static_cast<const std::uint16_t*>(b);
  for (Index i = 0; i < p.m; ++i) {
    for (Index j = 0; j < p.n; ++j) {
      real sum = p.add ? c[i * p.c_stride + j] : 0;
      for (Index k = 0; k < p.k; ++k) {
        sum += from_bf16_bits(left[i * p.a_stride + k]) *
               from_bf16_bits(right[(k / 2 * p.b_stride + j) * 2 + k % 2]);
      }
      c[i * p.c_stride + j] = sum;
    }
  }
}

std::atomic<int> portable_scopes{0};

const Backend* default_backend() {
  const char* wanted = std::getenv("DIFFTAPE_GEMM");
  if (wanted != nullptr && *wanted) return backend_by_name(wanted);
  return libxsmm_backend() != nullptr ? libxsmm_backend() : portable_backend();
}

}  // namespace

Kernel bf16_loop(const Product& shape) { return {shape, multiply_bf16}; }

const Backend* backend_by_name(std::string_view name) {
  const Backend* backend = name == "libxsmm"    ? libxsmm_backend()
                           : name == "portable" ? portable_backend()
                                                : nullptr;
  if (backend == nullptr) {
    throw UsageError(fmt::format("GEMM backend '{}' is not available here; use {}portable", name,
                                 libxsmm_backend() != nullptr ? "libxsmm or " : ""));
  }
  return backend;
}

const Backend& backend() {
  if (portable_scopes.load(std::memory_order_relaxed) > 0) return *portable_backend();
  static const Backend* const chosen = default_backend();
  return *chosen;
}

}  // namespace tile

EngineScope::EngineScope(Engine engine) : portable_(engine == Engine::portable) {
  if (portable_) ++tile::portable_scopes;
}
EngineScope::~EngineScope() {
  if (portable_) --tile::portable_scopes;
}

std::string unsupported_reason(Engine engine) {
  if (engine == Engine::fast || kFma) return "";
  const std::string slower = slower_level_reason();
  return fmt::format("this program was compiled for processors without fused multiply-add; {}",
                     slower.empty() ? "build it on this one" : slower);
}

const char* gemm_backend() { return tile::backend().name; }

std::string bf16_backend_name() {
  return tile::libxsmm_bf16_backend() != nullptr ? tile::libxsmm_bf16_backend()->name : "";
}

std::string unsupported_reason(Precision precision) {
  if (precision == Precision::full) return "";
  if (sizeof(real) != 4) return "bfloat16 needs the f32 program, and this is f64";
  if (precision == Precision::bf16 && tile::libxsmm_bf16_backend() == nullptr) {
    return "this processor has no AVX512-BF16, or the program was built without libxsmm";
  }
  return "";
}

}  // namespace difftape
