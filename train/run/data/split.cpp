#include "train/run/data/split.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "core/random.h"

namespace difftape::run {

namespace {

constexpr Index kBlock = 16384;
constexpr std::uint64_t kAnySeed = 0;  // the seed of the run has no say here

/// 0, 1, ..., n - 1 shuffled, the same way on every call.
std::vector<Index> permutation(Index n, std::string_view name) {
  const RandomStream stream(kAnySeed, name);
  std::vector<Index> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), Index{0});
  std::ranges::stable_sort(
      order, {}, [&stream](Index i) { return stream.bits(static_cast<std::uint64_t>(i)); });
  return order;
}

void append(std::vector<Span>& spans, const Span& next) {
  if (!spans.empty() && spans.back().end == next.begin) {
    spans.back().end = next.end;
  } else {
    spans.push_back(next);
  }
}

}  // namespace

Split split_by_blocks(Index size, Index window, double val_fraction) {
  if (size < 2 * window) throw std::logic_error("split_by_blocks: too short for two windows");
  const double smaller_part = static_cast<double>(size) * std::min(val_fraction, 1 - val_fraction);
  const Index largest = std::max(window, std::min(kBlock, size / 2));
  const Index block = std::clamp<Index>(std::llround(smaller_part), window, largest);
  const Index whole = size / block;
  const Index wanted = std::llround(val_fraction * static_cast<double>(whole));
  const Index val_blocks = std::clamp<Index>(wanted, 1, whole - 1);

  std::vector<bool> validates(static_cast<size_t>(whole));
  const std::vector<Index> order = permutation(whole, "data/split");
  for (Index i = 0; i < val_blocks; ++i) {
    validates[static_cast<size_t>(order[static_cast<size_t>(i)])] = true;
  }
  Split split;
  for (Index i = 0; i < whole; ++i) {
    append(validates[static_cast<size_t>(i)] ? split.val : split.train,
           {i * block, (i + 1) * block});
  }
  if (whole * block < size) append(split.train, {whole * block, size});
  return split;
}

std::vector<Index> shuffled_windows(const std::vector<Span>& spans, Index window) {
  std::vector<Index> starts;
  for (const Span& span : spans) {
    for (Index begin = span.begin; begin + window <= span.end; begin += window) {
      starts.push_back(begin);
    }
  }
  std::vector<Index> shuffled;
  for (Index i : permutation(static_cast<Index>(starts.size()), "data/val")) {
    shuffled.push_back(starts[static_cast<size_t>(i)]);
  }
  return shuffled;
}

}  // namespace difftape::run
