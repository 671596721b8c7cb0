#pragma once
// A row of tokens in files, one after the other, that may be larger than memory.

#include <functional>

#include "train/run/data/windows.h"
#include "train/run/records/h5.h"
#include "train/system/stored_bytes.h"

namespace difftape::run {

/// A file of tokens as it stores them, little-endian and not signed.
struct TokenFile {
  std::filesystem::path path;
  std::string format;  ///< "nanoGPT .bin", for messages
  system::StoredBytes bytes;
  std::size_t offset = 0;  ///< of the first token
  std::size_t width = 1;   ///< bytes a token: 1, 2, 4 or 8
  Index size = 0;          ///< tokens
  TokenizerFile tokenizer = {};
  std::string domain = {};  ///< it is one of
  /// Of HDF5 that stores them in another way, in chunks for example, the open file: /tokens is read
  /// piece by piece, `bytes` is not.
  std::shared_ptr<const h5::File> pieces = nullptr;

  /// Tokens [begin, begin + into.size()); those that do not fit into 31 bits are negative.
  void read(Index begin, std::span<std::int32_t> into) const;
};

class StoredTokens : public TokenSource {
 public:
  /// Sees all tokens of a file, piece by piece, `first` being the number of the first of a piece.
  using Check = std::function<void(const TokenFile&, Index first, std::span<const std::int32_t>)>;

  /// Reads all files once, for the check and the digest.
  StoredTokens(std::vector<TokenFile> files, const Check& check);

  Index size() const override { return ends_.empty() ? 0 : ends_.back(); }
  void copy(Index begin, std::span<std::int32_t> into) const override;

 private:
  std::vector<TokenFile> files_;
  std::vector<Index> ends_;  ///< tokens up to and including each file
};

}  // namespace difftape::run
