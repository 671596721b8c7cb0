#include "train/run/data/window_order.h"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <utility>

namespace difftape::run {

ShuffledWindows::ShuffledWindows(std::vector<Span> spans, WindowCut cut)
    : spans_(std::move(spans)), cut_(cut) {
  for (const Span& span : spans_) size_ += cut_.count(span);
}

Span ShuffledWindows::window(Index nth) const {
  constexpr Index kShortest = Index{1} << 16, kGrowth = 4;
  if (nth >= std::ssize(known_))
    known_ = prefix(std::min(size_, std::max(kShortest, kGrowth * (nth + 1))));
  const Index begin = known_[nth];
  return cut_.at(*std::ranges::upper_bound(spans_, begin, {}, &Span::end), begin);
}

/// Orders the windows by a random key of each. Keeps at most twice `length` of them in memory.
std::vector<Index> ShuffledWindows::prefix(Index length) const {
  const RandomStream keys(kAnySeed, "data/val");
  std::vector<std::pair<std::uint64_t, Index>> least;  // keys and first tokens
  std::uint64_t window = 0;
  for (const Span& span : spans_) {
    for (Index n = 0; n < cut_.count(span); ++n) {
      least.emplace_back(keys.bits(window++), span.begin + n * cut_.stride);
      if (std::ssize(least) < 2 * length) continue;
      std::ranges::nth_element(least, least.begin() + length);
      least.resize(length);
    }
  }
  std::ranges::sort(least);
  std::vector<Index> starts;
  for (Index i = 0; i < length; ++i) starts.push_back(least[i].second);
  return starts;
}

namespace {

/// Index of the first cumulative sum above `nth`, and the distance of `nth` from the previous sum.
struct Place {
  Index at, within;
};
Place find(const std::vector<Index>& sums, Index nth) {
  const Index at = std::ranges::upper_bound(sums, nth) - sums.begin();
  return {at, nth - (at == 0 ? 0 : sums[at - 1])};
}

}  // namespace

Epochs::Epochs(const std::vector<Span>& spans, Index seq_len, std::uint64_t seed)
    : seq_len_(seq_len),
      offsets_(static_cast<std::uint64_t>(seq_len), seed, "data/offset"),
      epochs_(seed, "data/train") {
  for (const Span& span : spans) {
    const Index targets = span.size() - 1;
    if (targets >= seq_len) rows_.push_back({span.begin, targets / seq_len, targets % seq_len});
  }
  if (rows_.empty()) throw std::logic_error("Epochs: no span is long enough for a window");
  std::ranges::stable_sort(rows_, std::greater(), &Row::rest);
  Index always = 0, all = 0;
  for (const Row& row : rows_) always_until_.push_back(always += row.windows - 1);
  for (Index slot = 0; slot < seq_len; ++slot) until_.push_back(all += windows_at(offset_of(slot)));
}

Index Epochs::windows_at(Index offset) const {
  const auto fits = [offset](const Row& row) { return row.rest >= offset; };
  return always_until_.back() + (std::ranges::partition_point(rows_, fits) - rows_.begin());
}

Index Epochs::largest() const { return windows_at(0); }

Index Epochs::start(Index n) const {
  const Index cycle = n / until_.back();
  const auto [slot, place] = find(until_, n % until_.back());
  const Index offset = offset_of(slot);
  const std::uint64_t key = epochs_.bits(static_cast<std::uint64_t>(cycle * seq_len_ + slot));
  const RandomPermutation order(static_cast<std::uint64_t>(windows_at(offset)), key, "data/epoch");
  // All windows except the last of each row, then the last windows that fit at this offset.
  const auto nth = static_cast<Index>(order(static_cast<std::uint64_t>(place)));
  const Index always = always_until_.back();
  const auto [row, window] = nth < always ? find(always_until_, nth) : Place{nth - always, -1};
  const Row& of = rows_[row];
  return of.begin + offset + (window < 0 ? of.windows - 1 : window) * seq_len_;
}

}  // namespace difftape::run
