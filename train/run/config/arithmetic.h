#pragma once
// The arithmetic that a configuration asks for, if this machine and program have it.

#include "train/run/config/config.h"

namespace difftape::run {

/// The engine of train.gemm. Throws ConfigError if it cannot be had in this program or with this
/// precision.
Engine engine_of(const Config& config);

/// The precision of train.precision. Throws ConfigError if it cannot be had on this machine.
Precision precision_of(const Config& config);

}  // namespace difftape::run
