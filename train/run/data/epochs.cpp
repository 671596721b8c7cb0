#include "train/run/data/epochs.h"

#include <algorithm>
#include <functional>
#include <stdexcept>

namespace difftape::run {

namespace {

/// In ascending sums, the first that is larger, and how far `nth` is above the one before it.
struct Place {
  Index at, within;
};
Place find(const std::vector<Index>& sums, Index nth) {
  const Index at = std::ranges::upper_bound(sums, nth) - sums.begin();
  return {at, nth - (at == 0 ? 0 : sums[static_cast<size_t>(at - 1)])};
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
  if (rows_.empty()) throw std::logic_error("Epochs: no span has room for a window");
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
  // First all windows of each row but the last, then the last of those where it fits.
  const auto nth = static_cast<Index>(order(static_cast<std::uint64_t>(place)));
  const Index always = always_until_.back();
  const auto [row, window] = nth < always ? find(always_until_, nth) : Place{nth - always, -1};
  const Row& of = rows_[static_cast<size_t>(row)];
  return of.begin + offset + (window < 0 ? of.windows - 1 : window) * seq_len_;
}

}  // namespace difftape::run
