#include "train/run/data/windows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <stdexcept>
#include <unordered_map>

#include "core/error.h"
#include "core/name_scope.h"
#include "core/random.h"

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

/// Returns the domains of a source; empty if there is only one or more than kMostDomains.
std::vector<DomainSpan> told_apart(const TokenSource& source) {
  std::set<std::string> names;
  for (const DomainSpan& each : source.domains) names.insert(each.domain);
  const bool few = names.size() > 1 && std::ssize(names) <= kMostDomains;
  return few ? source.domains : std::vector<DomainSpan>();
}

class Windows : public Dataset {
 public:
  Windows(std::shared_ptr<const TokenSource> source, std::shared_ptr<const TokenSource> val_source,
          const DataConfig& config, std::uint64_t seed, Index micro_batches)
      : source_(std::move(source)),
        own_val_source_(std::move(val_source)),
        batch_(config.batch_size),
        of_step_(config.batch_size * micro_batches),
        window_(config.seq_len + 1),
        split_(own_val_source_ ? Split{{{0, source_->size()}}, {{0, own_val_source_->size()}}}
                               : split_by_blocks(source_->size(), window_, config.val_fraction)),
        val_windows_(split_.val, window_, window_),
        held_out_(split_.val,
                  own_val_source_ ? told_apart(*own_val_source_) : std::vector<DomainSpan>()),
        epochs_(split_.train, config.seq_len, seed) {}

  Batch train_batch(Index step, Index micro) const override {
    std::vector<Index> starts;
    const Index first = step * of_step_ + micro * batch_;
    for (Index b = 0; b < batch_; ++b) starts.push_back(epochs_.start(first + b));
    return windows_at(*source_, starts, window_);
  }

  Batch val_batch(Index i) const override {
    return windows_at(val_source(), val_starts(i), window_);
  }

  std::vector<RowOrigin> val_origins(Index i) const override {
    std::vector<RowOrigin> origins;
    for (const Index start : val_starts(i)) origins.push_back(held_out_.origin(start));
    return origins;
  }
  std::vector<std::string> domains() const override { return held_out_.domains(); }

  /// Separate validation files are read completely, with a smaller last batch if necessary.
  Index val_batches() const override {
    return own_val_source_ ? ceil_div(val_windows_.size(), val_rows())
                           : val_windows_.size() / val_rows();
  }
  Index vocab_size() const override {
    return std::max(source_->vocab_size, val_source().vocab_size);
  }
  TokenizerFile tokenizer() const override { return source_->tokenizer; }
  std::vector<std::string> held_out_files() const override {
    return source_->division ? source_->division->held_out : std::vector<std::string>();
  }
  std::optional<double> bigram_entropy() const override {
    return run::bigram_entropy(*source_, split_.train);
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
    if (own_val_source_) info["val_xxh3_128"] = own_val_source_->digest;
    if (const std::optional<Division>& division = source_->division) {
      if (own_val_source_) info["val_files"] = own_val_source_->files;
      if (division->val_overlap) info["val_overlap"] = *division->val_overlap;
      info["dropped_files"] = division->dropped_files;
      info["dropped_bytes"] = division->dropped_bytes;
    }
    return info;
  }

 private:
  /// Returns the rows of a full batch, fewer if there are not enough windows.
  Index val_rows() const { return std::min(batch_, val_windows_.size()); }

  /// Returns the first tokens of the rows of a validation batch.
  std::vector<Index> val_starts(Index i) const {
    const Index first = i * val_rows();
    return val_windows_.starts(first, std::min(val_rows(), val_windows_.size() - first));
  }

  const TokenSource& val_source() const { return own_val_source_ ? *own_val_source_ : *source_; }

  std::shared_ptr<const TokenSource> source_;
  std::shared_ptr<const TokenSource> own_val_source_;  // null: validation is a part of source_
  Index batch_;
  Index of_step_;  ///< sequences per step
  Index window_;
  Split split_;
  ShuffledWindows val_windows_;
  HeldOut held_out_;
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

namespace {

/// Calls f(first, second) for each pair of neighbors in the first kCountedTokens tokens of the
/// spans.
template <class F>
void for_each_pair(const TokenSource& source, const std::vector<Span>& spans, F&& f) {
  constexpr Index kPiece = Index{1} << 14;
  Index left = kCountedTokens;
  std::vector<std::int32_t> tokens;
  for (const Span& span : spans) {
    const Index end = span.begin + std::min(span.size(), left);
    left -= end - span.begin;
    for (Index at = span.begin; at + 1 < end; at += kPiece) {  // pieces share one token
      tokens.resize(std::min(kPiece + 1, end - at));
      source.copy(at, tokens);
      for (size_t i = 1; i < tokens.size(); ++i)
        f(static_cast<std::uint64_t>(tokens[i - 1]), static_cast<std::uint64_t>(tokens[i]));
    }
  }
}

using Pairs = std::map<std::pair<std::uint64_t, std::uint64_t>, std::int64_t>;

/// Returns the count of each pair. A small vocabulary uses a table of all pairs, which is much
/// faster.
Pairs count_pairs(const TokenSource& source, const std::vector<Span>& spans) {
  constexpr Index kInTable = 1024;
  Pairs sorted;
  if (source.vocab_size <= kInTable) {
    const auto vocab = static_cast<std::uint64_t>(source.vocab_size);
    std::vector<std::int64_t> table(vocab * vocab);
    for_each_pair(source, spans, [&](auto first, auto second) { ++table[first * vocab + second]; });
    for (std::uint64_t i = 0; i < table.size(); ++i) {
      if (table[i] > 0)
        sorted.emplace_hint(sorted.end(), std::pair(i / vocab, i % vocab), table[i]);
    }
    return sorted;
  }
  std::unordered_map<std::uint64_t, std::int64_t> counts;
  for_each_pair(source, spans, [&](auto first, auto second) { ++counts[first << 32 | second]; });
  for (const auto& [pair, count] : counts)
    sorted.emplace(std::pair(pair >> 32, pair & 0xffffffff), count);
  return sorted;
}

}  // namespace

double bigram_entropy(const TokenSource& source, const std::vector<Span>& spans) {
  // A sorted map fixes the order of summation, and with it the bits.
  const Pairs pairs = count_pairs(source, spans);
  std::unordered_map<std::uint64_t, std::int64_t> firsts;
  for (const auto& [pair, count] : pairs) firsts[pair.first] += count;
  double sum = 0, total = 0;
  for (const auto& [pair, count] : pairs) {
    const auto n = static_cast<double>(count);
    sum += n * std::log(static_cast<double>(firsts[pair.first]) / n);
    total += n;
  }
  return total > 0 ? sum / total : 0;
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
    require(config.val_path.empty() ? "data.path" : "data.val_path", *val_source, 1,
            "one sequence of seq_len + 1; give more data");
    throw_if<DataError>(val_source->tokenizer.is_known() && source->tokenizer.is_known() &&
                            val_source->tokenizer != source->tokenizer,
                        "data.path was made by tokenizer {}, but data.val_path by {}; "
                        "prepare both with the same",
                        source->tokenizer.name, val_source->tokenizer.name);
  } else {
    require("data.path", *source, 2,
            "one training and one validation sequence of seq_len + 1; give more data");
  }
  return std::make_unique<Windows>(std::move(source), std::move(val_source), config, seed,
                                   micro_batches);
}

HeldOut::HeldOut(const std::vector<Span>& spans, const std::vector<DomainSpan>& domains) {
  if (domains.empty()) sizes_.push_back(0);
  for (const Span& span : spans) {
    if (domains.empty()) add(span, 0);
    const auto ends = [](const DomainSpan& of) { return of.span.end; };
    auto of = std::ranges::upper_bound(domains, span.begin, {}, ends);
    for (; of != domains.end() && of->span.begin < span.end; ++of) {
      add({std::max(span.begin, of->span.begin), std::min(span.end, of->span.end)},
          domain_of(of->domain));
    }
  }
}

Index HeldOut::domain_of(const std::string& name) {
  const auto known = std::ranges::find(names_, name);
  if (known != names_.end()) return known - names_.begin();
  names_.push_back(name);
  sizes_.push_back(0);
  return std::ssize(names_) - 1;
}

void HeldOut::add(const Span& span, Index domain) {
  Index& size = sizes_[domain];
  pieces_.push_back({span, domain, size});
  size += span.size();
}

RowOrigin HeldOut::origin(Index token) const {
  const auto begins = [](const Piece& piece) { return piece.span.begin; };
  const Piece& piece = *std::prev(std::ranges::upper_bound(pieces_, token, {}, begins));
  const Index place = piece.before + token - piece.span.begin;
  return {piece.domain, kLossGroups * place / sizes_[piece.domain]};
}

namespace {

class WholeRow : public ValidationData {
 public:
  WholeRow(std::shared_ptr<const TokenSource> source, Index seq_len, Index batch_size)
      : source_(std::move(source)),
        seq_len_(seq_len),
        batch_(batch_size),
        windows_({{0, source_->size()}}, seq_len + 1, seq_len),
        full_batches_(ceil_div(windows_.size(), batch_size)),
        left_(source_->size() - 1 - windows_.size() * seq_len) {}

  Batch val_batch(Index i) const override {
    if (i == full_batches_) return windows_at(*source_, {{source_->size() - 1 - left_}}, left_ + 1);
    const Index first = i * batch_, rows = std::min(batch_, windows_.size() - first);
    return windows_at(*source_, windows_.starts(first, rows), seq_len_ + 1);
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
  ShuffledWindows windows_;  ///< the full sequences
  Index full_batches_;       ///< batches of full sequences
  Index left_;               ///< targets after the last full sequence
};

}  // namespace

std::unique_ptr<ValidationData> make_whole_row(std::shared_ptr<const TokenSource> source,
                                               Index seq_len, Index batch_size) {
  throw_if<DataError>(source->size() < 2,
                      "{} has {} {}, but must have at least two; give more data", source->from,
                      source->size(), source->unit);
  return std::make_unique<WholeRow>(std::move(source), seq_len, batch_size);
}

}  // namespace difftape::run
