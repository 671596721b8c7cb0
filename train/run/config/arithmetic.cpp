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
        unsupported, emulated ? fmt::format(" or {}_emulated", to_string(precision)) : ""));
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
  const Precision precision = config.train.precision;
  if (engine == Engine::portable && precision != Precision::full && !is_emulated(precision)) {
    throw ConfigError(fmt::format(
        "train.gemm: portable multiplies no bfloat16, whose units add in an order of their own; "
        "set train.precision to {}_emulated or full, or train.gemm to auto",
        to_string(precision)));
  }
  return engine;
}

}  // namespace difftape::run
