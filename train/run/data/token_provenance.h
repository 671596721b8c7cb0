#pragma once
// The text that token files come from, as far as `data prepare` recorded it: in HDF5 files, or in
// c.bin.json and c.bin.model beside a c.bin.

#include <string>
#include <vector>

#include "train/run/data/sources.h"

namespace difftape::run {

/// Sets what the files next to a .bin or .npy say, .json and .model; either may be missing. Throws
/// DataError if the model is not the recorded tokenizer.
void read_sidecars(TokenFile& file);

/// Sets what the provenance of `data prepare`, a JSON text, says about the text and the tokens.
void take_provenance(TokenFile& file, const std::string& provenance);

/// The text of all files of a token source.
struct TextOfTokens {
  TokenizerFile tokenizer;  ///< unknown if it is for one of the files
  /// Size of the text; 0 if it is unknown for one of the files, or if their documents end with
  /// different tokens.
  Index bytes = 0;
  Index eos_token_id = -1;            ///< token that ends the documents; -1: none
  std::vector<std::string> recorded;  ///< digest of each file's tokens; may be empty

  /// Throws DataError if the tokens of a file are not those that `data prepare` described. Then the
  /// size of its text is wrong, and its tokenizer may be.
  void require_recorded(const std::vector<SourceFile>& files,
                        const std::vector<SourcePart>& parts) const;
};

/// Throws DataError if the files have different tokenizers.
TextOfTokens text_of(const std::vector<TokenFile>& files);

}  // namespace difftape::run
