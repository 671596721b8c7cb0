// What multiplies tiles: the choice, and plain loops for bfloat16.
#include "core/gemm_backend.h"

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "core/bf16.h"
#include "core/error.h"
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

}  // namespace

Kernel bf16_loop(const Product& shape) { return {shape, multiply_bf16}; }

}  // namespace tile

namespace {

std::atomic<const tile::Backend*> chosen{nullptr};
std::atomic<int> portable_scopes{0};

const tile::Backend* backend_by_name(std::string_view name) {
  const tile::Backend* backend = name == "libxsmm"    ? tile::libxsmm_backend()
                                 : name == "portable" ? tile::portable_backend()
                                                      : nullptr;
  if (backend == nullptr) {
    throw UsageError(fmt::format("GEMM backend '{}' is not available here; use {}portable", name,
                                 tile::libxsmm_backend() != nullptr ? "libxsmm or " : ""));
  }
  return backend;
}

}  // namespace

const tile::Backend& tile::backend() {
  if (portable_scopes.load(std::memory_order_relaxed) > 0) return *portable_backend();
  const Backend* backend = chosen.load(std::memory_order_relaxed);
  if (backend == nullptr) {
    const char* wanted = std::getenv("DIFFTAPE_GEMM");
    backend = wanted != nullptr && *wanted   ? backend_by_name(wanted)
              : libxsmm_backend() != nullptr ? libxsmm_backend()
                                             : portable_backend();
    chosen.store(backend, std::memory_order_relaxed);
  }
  return *backend;
}

const tile::Backend* tile::bf16_backend() {
  static const Backend* const backend =
      onednn_bf16_backend() != nullptr ? onednn_bf16_backend() : libxsmm_bf16_backend();
  return backend;
}

EngineScope::EngineScope(Engine engine) : portable_(engine == Engine::portable) {
  if (portable_) ++portable_scopes;
}
EngineScope::~EngineScope() {
  if (portable_) --portable_scopes;
}

std::string unsupported_reason(Engine engine) {
  if (engine == Engine::fast || kFma) return "";
  return "this program was compiled for processors without fused multiply-add; build it on this "
         "one";
}

const char* gemm_backend() { return tile::backend().name; }
void set_gemm_backend(const char* name) { chosen = backend_by_name(name); }

std::string bf16_backend_name() {
  return tile::bf16_backend() != nullptr ? tile::bf16_backend()->name : "";
}

std::string unsupported_reason(Precision precision) {
  if (precision == Precision::full) return "";
  if (sizeof(real) != 4) return "bfloat16 rounds the numbers of the f32 program, not of f64";
  if (!is_emulated(precision) && tile::bf16_backend() == nullptr) {
    return "this processor multiplies no bfloat16 (it has neither AMX nor AVX512-BF16), or the "
           "program was built without oneDNN and libxsmm";
  }
  return "";
}

}  // namespace difftape
