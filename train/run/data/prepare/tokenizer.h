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
#include "train/run/records/h5.h"

namespace difftape::run {

struct Tokenizer {
  TokenizerFile file;       ///< what it is
  std::string digest;       ///< XXH3 of the model; empty for bytes
  Index vocab_size = 0;     ///< tokens are in [0, vocab_size)
  Index eos_token_id = -1;  ///< the token that ends a document; -1: the tokenizer has none
  bool utf8 = false;        ///< the text must be UTF-8
  std::function<std::vector<std::int32_t>(std::string_view)> encode;
  /// Text of tokens, of which it leaves out those that it does not know.
  std::function<std::string(std::span<const std::int32_t>)> decode;
  std::function<Index(std::int32_t)> bytes;  ///< of the text that a token stands for
};

Tokenizer byte_tokenizer();

/// Throws MissingInput, and DataError if the file is not a SentencePiece model.
Tokenizer sentencepiece_tokenizer(const std::filesystem::path& model);
/// One that was kept, which must be known. Throws DataError if it is not a SentencePiece model.
Tokenizer tokenizer_of(const TokenizerFile& file);

/// Of `vocab_size` tokens those that a text can have: the tokenizer's, and the end of a document.
Index known_tokens(const Tokenizer& tokenizer, Index eos_token_id, Index vocab_size);

/// Text that is written token by token.
class TextStream {
 public:
  /// After these tokens, which are not shown. The tokenizer must outlive the stream.
  TextStream(const Tokenizer& tokenizer, std::span<const std::int32_t> prompt);
  /// What one more token adds. A character of which bytes are missing waits for them.
  std::string add(std::int32_t token);
  /// What still waits.
  std::string rest();

 private:
  std::string from_shown(bool all);
  void forget_shown();
  const Tokenizer& tokenizer_;
  std::vector<std::int32_t> tokens_;  ///< from the last one before what is shown that has a text
  std::size_t shown_;                 ///< bytes of their text
};

}  // namespace difftape::run
