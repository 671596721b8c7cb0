#include "train/run/data/windows.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <stdexcept>

#include "core/error.h"
#include "core/name_scope.h"
#include "core/random.h"
#include "train/run/data/held_out.h"
#include "train/system/number.h"

namespace difftape::run {
namespace {

constexpr Index kBlock = 16384;

/// Returns a fixed shuffle of the blocks 0, 1, ..., n - 1.
std::vector<Index> permutation(Index n) {
  const RandomStream stream(kAnySeed, "data/split");
  std::vector<Index> order(n);
  std::iota(order.begin(), order.end(), Index{0});
  std::ranges::stable_sort(
      order, {}, [&stream](Index i) { return stream.bits(static_cast<std::uint64_t>(i)); });
  return order;
}

void append(std::vector<Span>& spans, const Span& next) {
  if (!spans.empty() && spans.back().end == next.begin)
    spans.back().end = next.end;
  else
    spans.push_back(next);
}

/// Returns the number of tokens in files of `val` that are also files of `train`.
Index shared_tokens(const TokenSource& train, const TokenSource& val) {
  std::set<std::string> known;
  for (const SourcePart& part : train.parts) known.insert(part.tokens);
  Index shared = 0;
  for (const SourcePart& part : val.parts)
    if (known.contains(part.tokens)) shared += part.span.size();
  return shared;
}

class Windows : public Dataset {
 public:
  Windows(std::shared_ptr<const TokenSource> source, std::shared_ptr<const TokenSource> val_source,
          const DataConfig& config, std::uint64_t seed, Index micro_batches)
      : source_(std::move(source)),
        has_val_source_(val_source != nullptr),
        batch_(config.batch_size),
        of_step_(config.batch_size * micro_batches),
        window_(config.seq_len + 1),
        split_(has_val_source_ ? Split{{{0, source_->size()}}, {{0, val_source->size()}}}
                               : split_by_blocks(source_->size(), window_, config.val_fraction)),
        held_out_(has_val_source_ ? std::move(val_source) : source_, split_.val,
                  {.window = window_, .stride = window_}, batch_, has_val_source_),
        epochs_(split_.train, config.seq_len, seed) {}

  Batch train_batch(Index step, Index micro) const override {
    std::vector<Index> starts;
    const Index first = step * of_step_ + micro * batch_;
    for (Index b = 0; b < batch_; ++b) starts.push_back(epochs_.start(first + b));
    return windows_at(*source_, starts, window_);
  }

  Batch val_batch(Index i) const override { return held_out_.batch(i); }
  std::vector<Index> val_domains(Index i) const override { return held_out_.domains_of(i); }
  std::vector<std::string> domains() const override { return held_out_.domains(); }
  Index val_batches() const override { return held_out_.batches(); }
  Index vocab_size() const override {
    return std::max(source_->vocab_size, held_out_.source().vocab_size);
  }
  TokenizerFile tokenizer() const override { return source_->tokenizer; }
  const TokenSource* source() const override { return &held_out_.source(); }
  std::vector<std::string> notes() const override {
    std::vector<std::string> notes;
    if (!source_->note.empty()) notes.push_back("data.path: " + source_->note);
    if (has_val_source_ && !held_out_.source().note.empty())
      notes.push_back("data.val_path: " + held_out_.source().note);
    return notes;
  }

  std::string warning() const override {
    const TokenSource& val = held_out_.source();
    const Index shared = has_val_source_ ? shared_tokens(*source_, val) : 0;
    if (shared == 0) return "";
    return fmt::format(
        "warning: {} of the {} {} of data.val_path are in files that data.path also contains, so "
        "val/loss measures what the model memorized; train and validate on different files, or "
        "leave out data.val_path to hold out blocks",
        system::grouped(shared), system::grouped(val.size()), val.unit);
  }

  nlohmann::ordered_json info() const override {
    Index val_tokens = 0;
    for (const Span& span : split_.val) val_tokens += span.size();
    nlohmann::ordered_json info{{"type", source_->type},
                                {"files", source_->files},
                                {source_->unit, source_->size()},
                                {"val_" + source_->unit, val_tokens},
                                {"epoch_sequences", epochs_.largest()},
                                {"xxh3_128", source_->digest}};
    if (has_val_source_) info["val_xxh3_128"] = held_out_.source().digest;
    return info;
  }

 private:
  std::shared_ptr<const TokenSource> source_;
  bool has_val_source_;  ///< without, validation is a part of source_
  Index batch_;
  Index of_step_;  ///< sequences per step
  Index window_;
  Split split_;
  HeldOutWindows held_out_;
  Epochs epochs_;
};

}  // namespace

Batch windows_at(const TokenSource& source, std::span<const Index> starts, Index window) {
  Batch batch{std::ssize(starts), window - 1, {}};
  batch.tokens.resize(starts.size() * static_cast<size_t>(window));
  std::span<std::int32_t> rest(batch.tokens);
  for (const Index start : starts) {
    source.copy(start, rest.first(window));
    rest = rest.subspan(window);
  }
  return batch;
}

Split split_by_blocks(Index size, Index window, double val_fraction) {
  if (size < 2 * window) throw std::logic_error("split_by_blocks: too short for two windows");
  const double smaller_part = static_cast<double>(size) * std::min(val_fraction, 1 - val_fraction);
  const Index largest = std::max(window, std::min(kBlock, size / 2));
  const Index block = std::clamp<Index>(std::llround(smaller_part), window, largest);
  const Index whole = size / block;
  const Index wanted = std::llround(val_fraction * static_cast<double>(whole));
  const Index val_blocks = std::clamp<Index>(wanted, 1, whole - 1);

  std::vector<bool> validates(whole);
  const std::vector<Index> order = permutation(whole);
  for (Index i = 0; i < val_blocks; ++i) validates[order[i]] = true;
  Split split;
  for (Index i = 0; i < whole; ++i)
    append(validates[i] ? split.val : split.train, {i * block, (i + 1) * block});
  if (whole * block < size) append(split.train, {whole * block, size});
  return split;
}

std::unique_ptr<Dataset> make_windows(std::shared_ptr<const TokenSource> source,
                                      std::shared_ptr<const TokenSource> val_source,
                                      const DataConfig& config, std::uint64_t seed,
                                      Index micro_batches) {
  const Index window = config.seq_len + 1;
  const auto require = [&](const char* key, const TokenSource& of, Index windows,
                           const char* what) {
    if (of.size() >= windows * window) return;
    const NameScope scope(key);
    throw DataError(fmt::format("{} has {} {}, but data.seq_len {} needs at least {}: {}", of.from,
                                of.size(), of.unit, config.seq_len, windows * window, what));
  };
  if (val_source) {
    require("data.path", *source, 1, "one sequence of seq_len + 1; give more data");
    throw_if<DataError>(val_source->tokenizer.is_known() && source->tokenizer.is_known() &&
                            val_source->tokenizer != source->tokenizer,
                        "data.path was made by tokenizer {}, but data.val_path by {}; "
                        "prepare both with the same",
                        source->tokenizer.name, val_source->tokenizer.name);
  } else {
    require("data.path", *source, 2,
            "one training and one validation sequence of seq_len + 1; give more data");
  }
  const NameScope scope(val_source && !config.val_path.empty() ? "data.val_path" : "data.path");
  return std::make_unique<Windows>(std::move(source), std::move(val_source), config, seed,
                                   micro_batches);
}

namespace {

class WholeRow : public ValidationData {
 public:
  WholeRow(const std::shared_ptr<const TokenSource>& source, Index seq_len, Index batch_size)
      : windows_(source, {{0, source->size()}},
                 {.window = seq_len + 1, .stride = seq_len, .tails = true}, batch_size, false) {}

  Batch val_batch(Index i) const override { return windows_.batch(i); }
  Index val_batches() const override { return windows_.batches(); }
  Index vocab_size() const override { return source()->vocab_size; }
  TokenizerFile tokenizer() const override { return source()->tokenizer; }
  const TokenSource* source() const override { return &windows_.source(); }
  std::vector<std::string> notes() const override {
    if (source()->note.empty()) return {};
    return {"--data: " + source()->note};
  }
  nlohmann::ordered_json info() const override {
    return {{"type", source()->type},
            {"files", source()->files},
            {source()->unit, source()->size()},
            {"xxh3_128", source()->digest}};
  }

 private:
  HeldOutWindows windows_;
};

}  // namespace

std::unique_ptr<ValidationData> make_whole_row(std::shared_ptr<const TokenSource> source,
                                               Index seq_len, Index batch_size) {
  return std::make_unique<WholeRow>(source, seq_len, batch_size);
}

}  // namespace difftape::run
