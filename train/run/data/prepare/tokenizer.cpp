#include "train/run/data/prepare/tokenizer.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <memory>
#include <unordered_map>

#include "core/digest.h"
#include "core/error.h"
#include "train/run/data/sources.h"
#include "train/system/files.h"

namespace difftape::run {

Tokenizer byte_tokenizer() {
  return {.name = "bytes", .digest = {}, .vocab_size = kBytes, .encode = bytes_of};
}

Tokenizer sentencepiece_tokenizer(const std::filesystem::path& model) {
  const std::string proto = system::read_text(model);
  const auto processor = std::make_shared<sentencepiece::SentencePieceProcessor>();
  if (!processor->LoadFromSerializedProto(proto).ok() || processor->GetPieceSize() == 0) {
    throw DataError(fmt::format(
        "{}: is no model of SentencePiece; `difftape data tokenizer` makes one", model.string()));
  }
  Digest digest;
  digest.add(proto);
  return {.name = model.filename().string(),
          .digest = digest.hex(),
          .vocab_size = processor->GetPieceSize(),
          .eos_token_id = processor->eos_id(),
          .utf8 = true,
          .encode = [processor](std::string_view text) {
            std::vector<int> tokens;
            const auto status =
                processor->Encode(absl::string_view(text.data(), text.size()), &tokens);
            if (!status.ok()) throw DataError(status.ToString());
            return std::vector<std::int32_t>(tokens.begin(), tokens.end());
          }};
}

namespace {

/// Lines at hand, as the trainer takes them.
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

}  // namespace

std::string train_sentencepiece(std::vector<std::string> lines, Index vocab_size) {
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
                                                   {"max_sentence_length", "1000000000"},
                                                   {"minloglevel", "2"}},
      &iterator, &model);
  if (status.ok()) return model;
  std::string_view problem = status.error_message();  // after the place in the library's sources
  problem.remove_prefix(problem.find("] ") == problem.npos ? 0 : problem.find("] ") + 2);
  throw DataError(fmt::format("SentencePiece: {}", problem));
}

}  // namespace difftape::run
