#pragma once
// data.kind tokens: files of tokens that other programs wrote (token_files.h).

#include <memory>

#include "train/run/data/dataset.h"

namespace difftape::run {

/// Reads the files of data.path, one after the other in the order of find_sources. Throws
/// MissingInput, and DataError for a file that cannot be used, a token that is not in
/// [0, vocab_size), with its place, and fewer tokens than one sequence of each part.
std::unique_ptr<Dataset> make_token_data(const DataConfig& config, Index vocab_size,
                                         std::uint64_t seed);

}  // namespace difftape::run
