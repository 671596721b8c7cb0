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
inline std::vector<Arithmetic> arithmetics() {
  std::vector<Arithmetic> all{{"fast", Engine::fast, Precision::full},
                              {"portable", Engine::portable, Precision::full},
                              {"bf16_emulated", Engine::portable, Precision::bf16_emulated}};
  if (sizeof(real) == 4) all.push_back({"bf16", Engine::portable, Precision::bf16});
  return all;
}
inline std::string name_of(const testing::TestParamInfo<Arithmetic>& info) {
  return info.param.name;
}

/// Multiplies with the engine while it lives, and skips arithmetics that this machine lacks.
struct EveryArithmetic : testing::TestWithParam<Arithmetic> {
  void SetUp() override {
    if (engine == Engine::fast && tile::libxsmm_backend() == nullptr)
      GTEST_SKIP() << kOtherHardware
                   << "libxsmm is not built in, or has no code for this processor";
    const std::string unsupported = unsupported_reason(Precision::bf16);
    if (precision == Precision::bf16 && !unsupported.empty())
      GTEST_SKIP() << kOtherHardware << unsupported;
  }
  const Engine engine = GetParam().engine;
  const Precision precision = GetParam().precision;

 private:
  const EngineScope scope_{engine};
};

}  // namespace difftape::test
