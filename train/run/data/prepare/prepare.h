#pragma once
// Text as a file of tokens: what `difftape data prepare` writes, with where it comes from.

#include <optional>

#include "train/run/data/prepare/documents.h"
#include "train/run/data/prepare/tokenizer.h"

namespace difftape::run {

struct PrepareRequest {
  std::vector<std::filesystem::path> files;
  std::filesystem::path out;  ///< .bin, as nanoGPT's, or .h5 (train/run/data/token_data.cpp)
  Tokenizer tokenizer;
  std::string key = "text";  ///< of lines of JSON
  /// Ends each document; -1: nothing does; without one: that of the tokenizer.
  std::optional<Index> eos_token_id = {};
  /// Sees how many of how many bytes are read.
  std::function<void(Index done, Index total)> on_progress = [](Index, Index) {};
};

struct Prepared {
  std::vector<ReadFile> files;
  Index documents = 0, bytes = 0, tokens = 0;  ///< bytes: of the text
  Index vocab_size = 0;                        ///< what model.vocab_size must be at least
  Index eos_token_id = -1;                     ///< as data.eos_token_id
  std::string digest;                          ///< XXH3 of the tokens as they are stored
};

/// Writes the tokens of all documents in their order, each with its end if it has one, and says
/// where they come from: in <out>.json, or in the attribute `provenance` of the HDF5 file. A model
/// of SentencePiece is kept with them: as <out>.model, or as the dataset `tokenizer`. Each appears
/// whole or not at all. Throws UsageError if tokens do not fit the format, MissingInput,
/// DataError, also if the text has the token that ends documents, and OutputError.
Prepared prepare_tokens(const PrepareRequest& request);

}  // namespace difftape::run
