#pragma once
// The size of the text that a validation scored, for bits per byte.

#include <string>

#include "train/run/data/dataset.h"

namespace difftape::run {

/// The bytes of text that scored targets stand for.
struct ScoredText {
  Index bytes = 0;          ///< 0: unknown, or the data is not text
  std::string reason = {};  ///< why the bytes of text are unknown
};

/// Returns the size of the text of the scored targets of the first `batches` validation batches. It
/// is the sum of their pieces if the pieces of all tokens are as long as their text, and otherwise
/// known only if every token is scored.
ScoredText scored_text(const ValidationData& data, Index batches);

}  // namespace difftape::run
