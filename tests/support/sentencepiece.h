#pragma once
// Models of SentencePiece for tests.

#include <sentencepiece_trainer.h>

#include <string>
#include <unordered_map>
#include <vector>

namespace difftape::test {

/// Trains a byte-pair model that keeps text unchanged, including newlines and spaces, like the
/// flags of `spm_train` in train/run/data/README.md.
inline std::string train_sentencepiece(std::vector<std::string> lines, int vocab_size) {
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
  const auto status = sentencepiece::SentencePieceTrainer::Train(
      std::unordered_map<std::string, std::string>{{"model_type", "bpe"},
                                                   {"vocab_size", std::to_string(vocab_size)},
                                                   {"normalization_rule_name", "identity"},
                                                   {"remove_extra_whitespaces", "false"},
                                                   {"add_dummy_prefix", "false"},
                                                   {"allow_whitespace_only_pieces", "true"},
                                                   {"byte_fallback", "true"},
                                                   {"user_defined_symbols", "\n"},
                                                   {"minloglevel", "2"}},
      &iterator, &model);
  if (!status.ok()) throw std::runtime_error(status.ToString());
  return model;
}

}  // namespace difftape::test
