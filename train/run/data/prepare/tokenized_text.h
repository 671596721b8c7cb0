#pragma once
// Text as tokens of a model's tokenizer, in memory.

#include "train/run/data/prepare/tokenizer.h"
#include "train/run/data/windows.h"

namespace difftape::run {

/// Returns the tokens of the text files or JSON lines that `entries` of the key `key` name, as
/// `data prepare` would write them: each document ends with `eos_token_id`, unless that is
/// negative. Throws like read_documents.
std::shared_ptr<const TokenSource> tokenize_text(const char* key,
                                                 std::span<const std::string> entries,
                                                 const Tokenizer& tokenizer, Index eos_token_id);

}  // namespace difftape::run
