#pragma once
// A fixture for tests of products with every engine and precision.

#include "core/gemm_backend.h"
#include "core/tile.h"
#include "tests/support/test.h"

namespace difftape::test {

/// The engine that multiplies, and the precision of the operands.
struct Arithmetic {
  const char* name;
  Engine engine;
  Precision precision;
};
inline constexpr Arithmetic kArithmetics[] = {
    {"fast", Engine::fast, Precision::full},
    {"portable", Engine::portable, Precision::full},
    {"fast_bf16_emulated", Engine::fast, Precision::bf16_emulated},
    {"portable_bf16_emulated", Engine::portable, Precision::bf16_emulated},
    {"bf16", Engine::fast, Precision::bf16}};
inline std::string name_of(const testing::TestParamInfo<Arithmetic>& info) {
  return info.param.name;
}

/// Multiplies with the engine while it lives, and skips arithmetics that this machine lacks.
struct EveryArithmetic : testing::TestWithParam<Arithmetic> {
  void SetUp() override {
    if (engine == Engine::fast && tile::libxsmm_backend() == nullptr)
      GTEST_SKIP() << "libxsmm is not available here";
    const std::string unsupported = unsupported_reason(Precision::bf16);
    if (precision == Precision::bf16 && !unsupported.empty()) GTEST_SKIP() << unsupported;
  }
  const Engine engine = GetParam().engine;
  const Precision precision = GetParam().precision;

 private:
  const EngineScope scope_{engine};
};

}  // namespace difftape::test
