#pragma once
// What made tokens of text, kept with what depends on it: files of tokens, checkpoints.

#include <string>

namespace difftape::run {

namespace h5 {
class File;
}

struct TokenizerFile {
  std::string name;   ///< "bytes", or that of the model's file; empty: not known
  std::string model;  ///< the model of SentencePiece, as its file has it; empty for bytes

  bool is_known() const { return !name.empty(); }
  bool operator==(const TokenizerFile& other) const {
    return model == other.model && is_known() == other.is_known();
  }
};

/// The dataset <group>/tokenizer of bytes, with its name as an attribute; nothing if not known.
void write_tokenizer(h5::File& file, const std::string& group, const TokenizerFile& tokenizer);
TokenizerFile read_tokenizer(const h5::File& file, const std::string& group);

}  // namespace difftape::run
