#pragma once
// A row of tokens that is evaluated as a whole.

#include <memory>

#include "train/run/data/windows.h"

namespace difftape::run {

/// Every token but the first is a target once: sequences of `seq_len` inputs, each of which begins
/// with the last target of the one before it, in batches in the order of shuffled_windows. What is
/// left at the end, a shorter sequence, is the last batch. Throws DataError for a row of one token.
std::unique_ptr<ValidationData> make_whole_row(std::shared_ptr<const TokenSource> source,
                                               Index seq_len, Index batch_size);

}  // namespace difftape::run
