#pragma once
// What makes tokens of text: its bytes, or a model of SentencePiece (Kudo and Richardson 2018),
// whose library only tokenizer.cpp includes.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/real.h"

namespace difftape::run {

struct Tokenizer {
  std::string name;         ///< "bytes", or that of the model's file
  std::string digest;       ///< XXH3 of the model; empty for bytes
  Index vocab_size = 0;     ///< tokens are in [0, vocab_size)
  Index eos_token_id = -1;  ///< the token that ends a document; -1: the tokenizer has none
  bool utf8 = false;        ///< the text must be UTF-8
  std::function<std::vector<std::int32_t>(std::string_view)> encode;
};

Tokenizer byte_tokenizer();

/// Throws MissingInput, and DataError if the file is no model of SentencePiece.
Tokenizer sentencepiece_tokenizer(const std::filesystem::path& model);

/// A model of byte-pair encoding (Sennrich et al. 2016) from lines of text without their ends: it
/// leaves the text as it is, newlines and spaces too, and writes characters that it does not know
/// as bytes. The same lines give the same model. Throws DataError if they cannot give so many
/// tokens.
std::string train_sentencepiece(std::vector<std::string> lines, Index vocab_size);

}  // namespace difftape::run
