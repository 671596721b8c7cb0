#pragma once
// Models of SentencePiece for tests.

#include <sentencepiece_trainer.h>

#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

namespace difftape::test {

/// Trains a model with options of `spm_train`.
inline std::string train_sentencepiece(std::vector<std::string> lines,
                                       std::unordered_map<std::string, std::string> options) {
  class Lines : public sentencepiece::SentenceIterator {
   public:
    explicit Lines(std::vector<std::string> lines) : lines_(std::move(lines)) {}
    bool done() const override { return at_ == lines_.size(); }
    void Next() override { ++at_; }
    const std::string& value() const override { return lines_[at_]; }
    sentencepiece::util::Status status() const override { return {}; }

   private:
    std::vector<std::string> lines_;
    std::size_t at_ = 0;
  };
  Lines iterator(std::move(lines));
  std::string model;
  options["minloglevel"] = "2";
  const auto status = sentencepiece::SentencePieceTrainer::Train(options, &iterator, &model);
  if (!status.ok()) throw std::runtime_error(status.ToString());
  return model;
}

/// Trains a byte-pair model that keeps text unchanged, including newlines and spaces, like the
/// flags of `spm_train` in docs/data.md.
inline std::string train_sentencepiece(std::vector<std::string> lines, int vocab_size) {
  return train_sentencepiece(std::move(lines), {{"model_type", "bpe"},
                                                {"vocab_size", std::to_string(vocab_size)},
                                                {"normalization_rule_name", "identity"},
                                                {"remove_extra_whitespaces", "false"},
                                                {"add_dummy_prefix", "false"},
                                                {"allow_whitespace_only_pieces", "true"},
                                                {"byte_fallback", "true"},
                                                {"user_defined_symbols", "\n"}});
}

/// Trains a byte-pair model with the defaults of `spm_train` for text, which loses newlines,
/// repeated spaces and unknown characters.
inline std::string train_lossy_sentencepiece(std::vector<std::string> lines, int vocab_size) {
  return train_sentencepiece(std::move(lines), {{"model_type", "bpe"},
                                                {"vocab_size", std::to_string(vocab_size)},
                                                {"hard_vocab_limit", "false"}});
}

}  // namespace difftape::test
