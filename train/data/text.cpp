#include "train/data/text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "core/digest.h"
#include "core/error.h"
#include "core/random.h"
#include "train/data/sources.h"
#include "train/data/split.h"

namespace difftape {

namespace {

class Text : public Dataset {
 public:
  Text(std::string text, Index files, const DataConfig& config, std::uint64_t seed)
      : text_(std::move(text)),
        files_(files),
        batch_(config.batch_size),
        window_(config.seq_len + 1),
        split_(split_by_blocks(static_cast<Index>(text_.size()), window_, config.val_fraction)),
        val_starts_(shuffled_windows(split_.val, window_)),
        order_(seed, "data/train") {
    for (const Span& span : split_.train) {
      train_starts_ += std::max<Index>(span.size() - window_ + 1, 0);
      starts_until_.push_back(train_starts_);
    }
  }

  Batch train_batch(Index step, Index micro) const override {
    std::vector<Index> starts;
    for (Index b = 0; b < batch_; ++b) starts.push_back(train_start(step, micro * batch_ + b));
    return windows_at(starts);
  }

  Batch val_batch(Index i) const override {
    const auto first = val_starts_.begin() + i * val_rows();
    return windows_at({first, first + val_rows()});
  }

  Index val_batches() const override { return val_windows() / val_rows(); }
  Index vocab_size() const override { return 256; }

  nlohmann::ordered_json info() const override {
    Digest digest;
    digest.add(text_);
    Index val_bytes = 0;
    for (const Span& span : split_.val) val_bytes += span.size();
    return {{"kind", "text"},
            {"files", files_},
            {"bytes", text_.size()},
            {"val_bytes", val_bytes},
            {"xxh3_128", digest.hex()}};
  }

 private:
  Index val_windows() const { return static_cast<Index>(val_starts_.size()); }
  /// All validation batches have the same size; a text that cannot fill one has a smaller one.
  Index val_rows() const { return std::min(batch_, val_windows()); }

  /// First byte of sequence `row` of a step: uniform over all windows within a training span.
  Index train_start(Index step, Index row) const {
    const auto number = static_cast<std::uint64_t>(step) << 32 | static_cast<std::uint64_t>(row);
    const auto nth =
        static_cast<Index>(order_.below(number, static_cast<std::uint64_t>(train_starts_)));
    const auto span = std::ranges::upper_bound(starts_until_, nth) - starts_until_.begin();
    const Index before = span == 0 ? 0 : starts_until_[static_cast<size_t>(span - 1)];
    return split_.train[static_cast<size_t>(span)].begin + nth - before;
  }

  Batch windows_at(const std::vector<Index>& starts) const {
    Batch batch{static_cast<Index>(starts.size()), window_ - 1, {}};
    batch.tokens.reserve(starts.size() * static_cast<size_t>(window_));
    for (Index start : starts) {
      for (Index i = start; i < start + window_; ++i) {
        batch.tokens.push_back(static_cast<unsigned char>(text_[static_cast<size_t>(i)]));
      }
    }
    return batch;
  }

  std::string text_;
  Index files_, batch_, window_;
  Split split_;
  std::vector<Index> val_starts_;
  std::vector<Index> starts_until_;  // windows in the training spans up to and including each
  Index train_starts_ = 0;
  RandomStream order_;
};

}  // namespace

std::unique_ptr<Dataset> make_text(const DataConfig& config, std::uint64_t seed) {
  const ErrorScope scope("data.path");
  const auto files = find_sources(config.path);
  std::string text = read_sources(files);
  const Index needed = 2 * (config.seq_len + 1);
  if (static_cast<Index>(text.size()) < needed) {
    throw DataError(fmt::format(
        "the text of {} is {} bytes long; data.seq_len {} needs at least {}, one sequence of "
        "seq_len + 1 to train and one to validate",
        files.size() == 1 ? files[0].string() : fmt::format("{} files", files.size()), text.size(),
        config.seq_len, needed));
  }
  return std::make_unique<Text>(std::move(text), static_cast<Index>(files.size()), config, seed);
}

}  // namespace difftape
