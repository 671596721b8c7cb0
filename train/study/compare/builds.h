#pragma once
// Which builds of the program trained the runs that are compared.

#include <span>
#include <string>

#include "train/study/compare/run_record.h"

namespace difftape::study {

/// The commits, or the builds, of the runs in the order of their first ones; empty if they are one.
std::string builds_note(std::span<const RunRecord> runs);

}  // namespace difftape::study
