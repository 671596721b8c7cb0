#pragma once
// Tokenizers: bytes, or a SentencePiece model (Kudo and Richardson 2018). Only tokenizer.cpp
// includes the SentencePiece library.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/real.h"
#include "train/run/records/h5.h"

namespace difftape::run {

struct Tokenizer {
  TokenizerFile file;       ///< name and model
  std::string digest;       ///< XXH3 of the model; empty for bytes
  Index vocab_size = 0;     ///< tokens are in [0, vocab_size)
  Index eos_token_id = -1;  ///< token that ends a document; -1: none
  bool utf8 = false;        ///< the text must be UTF-8
  std::function<std::vector<std::int32_t>(std::string_view)> encode;
  /// Converts tokens to text; unknown tokens are left out.
  std::function<std::string(std::span<const std::int32_t>)> decode;
  std::function<Index(std::int32_t)> bytes;  ///< length of a token's text, bytes
  /// Length of the text of a document's first token, without the space that the model may add.
  std::function<Index(std::int32_t)> first_bytes;
  std::int32_t unknown = -1;  ///< token of characters that the vocabulary lacks; -1: none
  /// Tokenizer of lines that continue a document; null: the same one. A model that puts a space
  /// before every text would put one into the middle of the document.
  std::shared_ptr<const Tokenizer> rest = nullptr;
};

/// Calls `see` with parts of `text` and their tokens. The parts are about kPartBytes long and end
/// with lines, so a long text needs little memory.
/// `continues` is true for text that continues a document after the end of a line.
void encode_in_parts(
    const Tokenizer& tokenizer, std::string_view text, bool continues,
    const std::function<void(std::string_view, std::span<const std::int32_t>)>& see);
inline constexpr std::size_t kPartBytes = std::size_t{256} << 10;

/// Losses of a text by a tokenizer: characters that are missing from the decoded tokens.
struct TextLoss {
  Index unknown = 0;                               ///< tokens for characters out of the vocabulary
  Index newlines = 0, spaces = 0, characters = 0;  ///< others are counted as characters

  /// Adds what the tokens of a text lose of it. They begin with a document unless it continues.
  void add(const Tokenizer& tokenizer, std::string_view text, std::span<const std::int32_t> tokens,
           bool continues);
  bool any() const { return unknown + newlines + spaces + characters > 0; }
};

/// The tokens on which a model was trained.
struct ModelTokens {
  TokenizerFile tokenizer;      ///< bytes for a model of text
  bool of_token_files = false;  ///< data.type was tokens; with an unknown tokenizer, not bytes
};

/// Throws DataError if the tokens of the data would mean something else to the model of
/// `checkpoint`: both tokenizers are known and differ, or the data is bytes and the model is of
/// token files of an unknown tokenizer.
void require_same_tokenizer(const std::filesystem::path& checkpoint, const ModelTokens& model,
                            const TokenizerFile& data);

Tokenizer byte_tokenizer();

inline constexpr const char* kTrainOne = "train one with `spm_train`";
/// Loads a SentencePiece model. Throws MissingInput, and DataError with the remedy if the file is
/// not one.
Tokenizer sentencepiece_tokenizer(const std::filesystem::path& model,
                                  const char* remedy = kTrainOne);
/// Returns the tokenizer of a known `file`. Throws DataError if its model is not a SentencePiece
/// model.
Tokenizer tokenizer_of(const TokenizerFile& file);

/// Returns how many of `vocab_size` tokens can occur in text: the tokenizer's and the end token.
Index known_tokens(const Tokenizer& tokenizer, Index eos_token_id, Index vocab_size);

/// Decodes tokens one at a time.
class TextStream {
 public:
  /// Begins after `prompt`, which is not returned. The tokenizer must outlive the stream.
  TextStream(const Tokenizer& tokenizer, std::span<const std::int32_t> prompt);
  /// Returns the text that a token adds. An incomplete character is held back.
  std::string add(std::int32_t token);
  /// Returns the text held back so far.
  std::string rest();

 private:
  std::string from_shown(bool all);
  void forget_shown();
  const Tokenizer& tokenizer_;
  std::vector<std::int32_t> tokens_;  ///< tokens that the text of the next one may depend on
  std::size_t shown_;                 ///< bytes of their text already returned
};

}  // namespace difftape::run
