#include "train/run/data/whole_row.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace difftape::run {

namespace {

class WholeRow : public ValidationData {
 public:
  WholeRow(std::shared_ptr<const TokenSource> source, Index seq_len, Index batch_size)
      : source_(std::move(source)),
        seq_len_(seq_len),
        batch_(batch_size),
        starts_(shuffled_windows({{0, source_->size()}}, seq_len + 1, seq_len)),
        full_batches_(ceil_div(std::ssize(starts_), batch_size)),
        left_(source_->size() - 1 - std::ssize(starts_) * seq_len) {}

  Batch val_batch(Index i) const override {
    if (i == full_batches_) return windows_at(*source_, {{source_->size() - 1 - left_}}, left_ + 1);
    const Index first = i * batch_, rows = std::min(batch_, std::ssize(starts_) - first);
    return windows_at(
        *source_, std::span(starts_).subspan(static_cast<size_t>(first), static_cast<size_t>(rows)),
        seq_len_ + 1);
  }
  Index val_batches() const override { return full_batches_ + (left_ > 0 ? 1 : 0); }
  Index vocab_size() const override { return source_->vocab_size; }
  TokenizerFile tokenizer() const override { return source_->tokenizer; }
  nlohmann::ordered_json info() const override {
    return {{"type", source_->type},
            {"files", source_->files},
            {source_->unit, source_->size()},
            {"xxh3_128", source_->digest}};
  }

 private:
  std::shared_ptr<const TokenSource> source_;
  Index seq_len_, batch_;
  std::vector<Index> starts_;  ///< of whole sequences
  Index full_batches_;         ///< of them
  Index left_;                 ///< targets behind the last whole sequence
};

}  // namespace

std::unique_ptr<ValidationData> make_whole_row(std::shared_ptr<const TokenSource> source,
                                               Index seq_len, Index batch_size) {
  if (source->size() < 2)
    throw DataError(fmt::format("{} is {} {} long; need two, the second of which is predicted",
                                source->from, source->size(), source->unit));
  return std::make_unique<WholeRow>(std::move(source), seq_len, batch_size);
}

}  // namespace difftape::run
