#pragma once
// Text as a file of tokens: what `difftape data prepare` writes, with where it comes from.

#include "train/run/data/prepare/corpus.h"
#include "train/run/data/prepare/tokenizer.h"
#include "train/run/data/sources.h"

namespace difftape::run {

struct PrepareRequest {
  std::vector<SourceFile> files;
  std::filesystem::path out;  ///< .bin, as nanoGPT's, or .h5 (train/run/data/token_data.cpp)
  Tokenizer tokenizer;
  std::string key = "text";  ///< of lines of JSON
  /// Ends each document; -1: nothing does; without one: that of the tokenizer.
  std::optional<Index> eos_token_id = {};
  /// Without any: every document trains, and no text is kept in memory.
  CorpusOptions options = {};
  std::filesystem::path val_out = {};  ///< directory of <domain>.bin or .h5, of what validates
  /// Sees how many of how many bytes are read; with options all are read twice.
  std::function<void(Index done, Index total)> on_progress = [](Index, Index) {};
};

struct Prepared {
  std::vector<ReadFile> files;
  std::vector<DomainCounts> domains;           ///< without options none
  Index documents = 0, bytes = 0, tokens = 0;  ///< that train; bytes: of the text
  Index vocab_size = 0;                        ///< what model.vocab_size must be at least
  Index eos_token_id = -1;                     ///< as data.eos_token_id
  std::string digest;                          ///< XXH3 of the tokens as they are stored
};

/// Where the held-out tokens of a domain are written.
std::filesystem::path val_file(const PrepareRequest& request, const std::string& domain);

/// Writes the tokens of the documents in their order, each with its end if it has one: those that
/// train to `out`, the others of each domain to val_file(). Beside or in each file it says
/// where they come from: in <out>.json, or in the attribute `provenance` of the HDF5 file. A model
/// of SentencePiece is kept with them: as <out>.model, or as the dataset `tokenizer`. Each appears
/// whole or not at all. Throws UsageError if tokens do not fit the format or options do not go
/// together, what divide_documents throws, DataError also if the text has the token that ends
/// documents, and OutputError.
Prepared prepare_tokens(const PrepareRequest& request);

}  // namespace difftape::run
