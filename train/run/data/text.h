#pragma once
// data.kind text: the bytes of files, one token a byte.

#include <memory>

#include "train/run/data/dataset.h"

namespace difftape::run {

/// Reads the files of data.path. Throws MissingInput, and DataError if the text is too short for
/// one sequence of each part.
std::unique_ptr<Dataset> make_text(const DataConfig& config, Index vocab_size, std::uint64_t seed);

}  // namespace difftape::run
