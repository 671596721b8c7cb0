#include "train/run/config/arithmetic.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/names.h"

namespace difftape::run {

Precision precision_of(const Config& config) {
  const Precision precision = config.train.precision;
  const std::string unsupported = unsupported_reason(precision);
  if (!unsupported.empty()) {
    throw ConfigError(fmt::format(
        "train.precision: precision {} cannot be had here: {}; use full{}", to_string(precision),
        unsupported,
        unsupported_reason(Precision::bf16_emulated).empty() ? " or bf16_emulated" : ""));
  }
  return precision;
}

Engine engine_of(const Config& config) {
  const Engine engine = config.train.engine;
  const std::string unsupported = unsupported_reason(engine);
  if (!unsupported.empty()) {
    throw ConfigError(fmt::format("train.engine: {} cannot be had here: {}; or use fast",
                                  to_string(engine), unsupported));
  }
  if (engine == Engine::portable && config.train.precision == Precision::bf16) {
    throw ConfigError(
        "train.engine: portable multiplies no bfloat16, whose units add in an order of their own; "
        "set train.precision to bf16_emulated or full, or train.engine to fast");
  }
  return engine;
}

}  // namespace difftape::run
