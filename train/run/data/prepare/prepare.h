#pragma once
// Converts text to token files with their provenance, for `difftape data prepare`.

#include "train/run/data/prepare/corpus.h"
#include "train/run/data/prepare/tokenizer.h"
#include "train/run/data/sources.h"

namespace difftape::run {

struct PrepareRequest {
  std::vector<SourceFile> files;
  std::filesystem::path out;  ///< .bin of nanoGPT, or .h5 (train/run/data/token_data.cpp)
  Tokenizer tokenizer;
  std::string key = "text";  ///< key of the document in a JSON line
  /// Token that ends each document; -1: none; no value: the tokenizer's.
  std::optional<Index> eos_token_id = {};
  /// Without any option, every document trains and no text is kept in memory.
  CorpusOptions options = {};
  std::filesystem::path val_out = {};  ///< directory of the validation files <domain>.bin or .h5
  /// Progress callback, bytes. With options, files are read twice, and `total` counts both passes.
  std::function<void(Index done, Index total)> on_progress = [](Index, Index) {};
  /// Asked after every 256 KiB of text: true ends the conversion by PreparationStopped.
  std::function<bool()> stopped = [] { return false; };
};

/// Thrown by prepare_tokens() if PrepareRequest::stopped returns true. No file is left behind.
class PreparationStopped : public std::exception {};

struct Prepared {
  std::vector<ReadFile> files;
  std::vector<DomainCounts> domains;           ///< empty without options
  Index documents = 0, bytes = 0, tokens = 0;  ///< training data; bytes of text
  Index vocab_size = 0;                        ///< minimum of model.vocab_size
  Index eos_token_id = -1;                     ///< value for data.eos_token_id
  std::string digest;                          ///< XXH3 of the stored training tokens
  TextLoss loss;                               ///< what the tokens of all outputs lose of the text
};

/// Returns the path of the held-out tokens of a domain.
std::filesystem::path val_file(const PrepareRequest& request, const std::string& domain);

/// Writes the tokens of the documents in order, each followed by the end token if there is one:
/// training documents to `out`, validation documents to val_file(). Provenance goes to <out>.json,
/// or to the attribute `provenance` of an HDF5 file; a SentencePiece model goes to <out>.model, or
/// to the dataset `tokenizer`. Each file is written atomically. Throws UsageError if the tokens do
/// not fit the format or options conflict, DataError if the text contains the end token,
/// OutputError, and everything that divide_documents throws.
Prepared prepare_tokens(const PrepareRequest& request);

}  // namespace difftape::run
