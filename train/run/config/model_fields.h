#pragma once
// The keys of the section `model:`, a part of the registry of fields.h.

#include "train/run/config/fields.h"

namespace difftape::run {

/// In the order of the structs.
std::vector<Field> model_fields();

}  // namespace difftape::run
