#pragma once
// The unit of losses.

#include "train/run/config/config.h"

namespace difftape::run {

/// Returns "nats per byte" for text, whose tokens are bytes, else "nats per token".
constexpr const char* loss_unit(DataKind type) {
  return type == DataKind::text ? "nats per byte" : "nats per token";
}

}  // namespace difftape::run
