#pragma once
// Rules between the keys of section data: which sizes a generated task can have.

#include <vector>

#include "layers/attention/errors.h"
#include "train/run/config/config.h"

namespace difftape::run {

/// Different tokens of a task. 0 for kinds that are no task, whose tokens are those of files.
Index task_vocab_size(const DataConfig& data);

/// Tokens of one fact of needles: city and digits.
inline Index fact_tokens(const DataConfig& data) { return 1 + data.digits; }
/// Tokens of one question of needles and its answer: marker, city and digits.
inline Index question_tokens(const DataConfig& data) { return 2 + data.digits; }
/// Places of the answer of needles in validation: 0, 25, 50, 75 and 100 % of the context.
constexpr Index kDepths = 5;

/// What is impossible about the section, given model.vocab_size.
std::vector<FieldError> task_errors(const DataConfig& data, Index vocab_size);
/// Validation sequences it takes to have every setting at every depth; 0 for other kinds.
Index least_val_sequences(const DataConfig& data);

}  // namespace difftape::run
