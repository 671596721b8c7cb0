#pragma once
// The configuration that `difftape init` writes.

#include <string>

#include "layers/attention/kinds.h"

namespace difftape::run {

/// A configuration of this attention, YAML of what people change first, each key with its default
/// below what it means; the fields of the attention are there as comments. `file` is what it will
/// be called. It trains as it is.
std::string starter_config(const AttentionKind& kind, const std::string& file);

}  // namespace difftape::run
