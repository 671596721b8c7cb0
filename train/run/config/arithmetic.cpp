#include "train/run/config/arithmetic.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/names.h"

namespace difftape::run {

Precision precision_of(const Config& config) {
  const Precision precision = config.train.precision;
  const std::string unsupported = unsupported_reason(precision);
  if (!unsupported.empty()) {
    const bool emulated = unsupported_reason(Precision::bf16_emulated).empty();
    throw ConfigError(fmt::format(
        "train.precision: precision {} cannot be had here: {}; use full{}", to_string(precision),
        unsupported, emulated ? " or bf16_emulated" : ""));
  }
  return precision;
}

Engine engine_of(const Config& config) {
  const Engine engine = config.train.gemm;
  const std::string unsupported = unsupported_reason(engine);
  if (!unsupported.empty()) {
    throw ConfigError(fmt::format("train.gemm: {} cannot be had here: {}; or use auto",
                                  to_string(engine), unsupported));
  }
  if (engine == Engine::portable && config.train.precision == Precision::bf16) {
    throw ConfigError(
        "train.gemm: portable multiplies no bfloat16, whose units add in an order of their own; "
        "set train.precision to bf16_emulated or full, or train.gemm to auto");
  }
  return engine;
}

}  // namespace difftape::run
