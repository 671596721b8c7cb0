#include "core/gemm_backend.h"

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "core/platform.h"
#include "core/simd.h"
#include "core/tile.h"

namespace difftape {

namespace tile {

namespace {

std::atomic<int> portable_scopes{0};

const Backend* default_backend() {
  const char* wanted = std::getenv("DIFFTAPE_GEMM");
  if (wanted != nullptr && *wanted) return backend_by_name(wanted);
  return libxsmm_backend() != nullptr ? libxsmm_backend() : portable_backend();
}

}  // namespace

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

Pairs pairs_of(Precision precision) {
  if (precision == Precision::full) return nullptr;
  const Pairs units = precision == Precision::bf16 ? avx512_bf16_pairs() : nullptr;
  return units != nullptr ? units : portable_pairs();
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
  return tile::avx512_bf16_pairs() != nullptr ? "AVX512-BF16" : "";
}

std::string unsupported_reason(Precision precision) {
  if (precision == Precision::full) return "";
  if (sizeof(real) != 4) return "bfloat16 needs the f32 program, and this is f64";
  if (precision == Precision::bf16 && tile::avx512_bf16_pairs() == nullptr) {
    return "this processor has no AVX512-BF16, or the program was not compiled for it by GCC";
  }
  return "";
}

}  // namespace difftape
