#include "core/engine.h"

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "core/bf16.h"
#include "core/error.h"
#include "core/tile.h"

namespace difftape {

namespace {

std::atomic<const tile::Engine*> chosen{nullptr};

const tile::Engine* engine_named(std::string_view name) {
  const tile::Engine* engine = name == "libxsmm" ? tile::libxsmm_engine()
                               : name == "eigen" ? tile::eigen_engine()
                                                 : nullptr;
  if (engine == nullptr) {
    throw UsageError(fmt::format("matrix engine '{}' is not available here; use {}eigen", name,
                                 tile::libxsmm_engine() != nullptr ? "libxsmm or " : ""));
  }
  return engine;
}

/// A tile of bfloat16 in plain loops.
void multiply_bf16(const tile::Kernel& kernel, const void* a, const void* b, real* c) {
  const tile::Product& p = kernel.shape;
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

const tile::Engine& tile::engine() {
  const Engine* engine = chosen.load(std::memory_order_relaxed);
  if (engine == nullptr) {
    const char* wanted = std::getenv("DIFFTAPE_GEMM");
    engine = wanted != nullptr && *wanted  ? engine_named(wanted)
             : libxsmm_engine() != nullptr ? libxsmm_engine()
                                           : eigen_engine();
    chosen.store(engine, std::memory_order_relaxed);
  }
  return *engine;
}

tile::Kernel tile::bf16_loop(const Product& shape) { return {shape, multiply_bf16}; }

const tile::Engine* tile::bf16_engine() {
  static const Engine* const engine =
      onednn_bf16_engine() != nullptr ? onednn_bf16_engine() : libxsmm_bf16_engine();
  return engine;
}

const char* gemm_engine() { return tile::engine().name; }
void set_gemm_engine(const char* name) { chosen = engine_named(name); }

std::string bf16_engine_name() {
  return tile::bf16_engine() != nullptr ? tile::bf16_engine()->name : "";
}

std::string unsupported_reason(Precision precision) {
  if (precision == Precision::full) return "";
  if (sizeof(real) != 4) return "bfloat16 rounds the numbers of the f32 program, not of f64";
  if (precision == Precision::bf16 && tile::bf16_engine() == nullptr) {
    return "this processor multiplies no bfloat16 (it has neither AMX nor AVX512-BF16), or the "
           "program was built without oneDNN and libxsmm";
  }
  return "";
}

}  // namespace difftape
