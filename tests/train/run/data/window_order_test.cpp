#include "train/run/data/window_order.h"

#include <rapidcheck/gtest.h>

#include "tests/support/test.h"

namespace difftape::run {
namespace {

constexpr std::uint64_t kSeed = 3;

/// Returns the first tokens of all windows of an epoch with a given offset.
std::vector<Index> windows_of(const std::vector<Span>& spans, Index seq_len, Index offset) {
  std::vector<Index> starts;
  for (const Span& span : spans)
    for (Index at = span.begin + offset; at + seq_len + 1 <= span.end; at += seq_len)
      starts.push_back(at);
  return starts;
}

/// Returns the first epochs of a run that have windows, by brute force: the windows of the offset
/// whose windows include the first sequence of the epoch.
struct Epoch {
  Index offset = 0;
  std::vector<Index> starts;
};
std::vector<Epoch> epochs_of(const std::vector<Span>& spans, Index seq_len, Index count,
                             std::uint64_t seed = kSeed) {
  const Epochs order(spans, seq_len, seed);
  std::map<Index, std::vector<Index>> by_start;  // windows of the offset that has a window there
  std::map<Index, Index> offset_of;
  for (Index offset = 0; offset < seq_len; ++offset) {
    const std::vector<Index> starts = windows_of(spans, seq_len, offset);
    for (const Index start : starts) {
      by_start[start] = starts;
      offset_of[start] = offset;
    }
  }
  std::vector<Epoch> epochs;
  for (Index n = 0; std::ssize(epochs) < count;) {
    const Index first = order.start(n);
    Epoch epoch{offset_of.at(first), {}};
    for (size_t i = 0; i < by_start.at(first).size(); ++i) epoch.starts.push_back(order.start(n++));
    epochs.push_back(std::move(epoch));
  }
  return epochs;
}

/// Expects each epoch of two cycles to have each window of its offset once, and each cycle each
/// offset once.
void expect_each_window_once(const std::vector<Span>& spans, Index seq_len) {
  Index offsets = 0;  // number of offsets with windows
  for (Index offset = 0; offset < seq_len; ++offset)
    offsets += windows_of(spans, seq_len, offset).empty() ? 0 : 1;
  std::set<Index> seen;
  for (const Epoch& epoch : epochs_of(spans, seq_len, 2 * offsets)) {
    EXPECT_THAT(epoch.starts,
                testing::UnorderedElementsAreArray(windows_of(spans, seq_len, epoch.offset)));
    if (std::ssize(seen) == offsets) seen.clear();
    EXPECT_TRUE(seen.insert(epoch.offset).second) << epoch.offset;
  }
}

TEST(Epochs, have_each_window_once_before_the_next_begins) {
  expect_each_window_once({{0, 2}}, 1);    // one window
  expect_each_window_once({{5, 8}}, 1);    // two
  expect_each_window_once({{0, 17}}, 16);  // one, at one offset only
  expect_each_window_once({{0, 33}}, 16);  // two at offset 0, else one
  expect_each_window_once({{0, 97}}, 1);   // a prime number of them
  expect_each_window_once({{3, 3 + 7 * 13 + 1}}, 7);
  expect_each_window_once({{0, 100}, {140, 165}, {200, 203}, {300, 304}, {310, 400}}, 3);
  expect_each_window_once({{0, 1009}, {2000, 2005}, {2010, 2018}}, 5);
}

RC_GTEST_PROP(Epochs, have_each_window_once_whatever_the_spans, ()) {
  const Index seq_len = *rc::gen::inRange<Index>(1, 12);
  std::vector<Span> spans;
  Index at = 0;
  for (Index i = *rc::gen::inRange<Index>(1, 6); i > 0; --i) {
    at += *rc::gen::inRange<Index>(1, 5);
    const Index size = *rc::gen::inRange<Index>(1, 60);
    spans.push_back({at, at + size});
    at += size;
  }
  spans.push_back({at + 1, at + 2 + seq_len});
  expect_each_window_once(spans, seq_len);
}

TEST(Epochs, differ_in_order_and_offset_from_one_another_and_by_seed) {
  const std::vector<Span> spans{{0, 2001}};
  const std::vector<Epoch> epochs = epochs_of(spans, 20, 20), others = epochs_of(spans, 20, 20, 4);
  std::set<std::vector<Index>> orders;
  const auto add = [&orders](const Epoch& epoch) {
    std::vector<Index> windows;
    for (const Index start : epoch.starts) windows.push_back((start - epoch.offset) / 20);
    EXPECT_FALSE(std::ranges::is_sorted(windows));
    EXPECT_TRUE(orders.insert(windows).second);
  };
  std::vector<Index> offsets, other_offsets;
  for (size_t i = 0; i < epochs.size(); ++i) {
    add(epochs[i]);
    add(others[i]);
    offsets.push_back(epochs[i].offset);
    other_offsets.push_back(others[i].offset);
  }
  EXPECT_FALSE(std::ranges::is_sorted(offsets));
  EXPECT_NE(offsets, other_offsets);
}

TEST(Epochs, repeat_their_offsets_in_another_order_of_windows) {
  const std::vector<Epoch> epochs = epochs_of({{0, 400}}, 4, 8);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(epochs[i].offset, epochs[i + 4].offset);
    EXPECT_NE(epochs[i].starts, epochs[i + 4].starts);
  }
}

TEST(Epochs, of_more_tokens_than_memory_are_computed_on_demand) {
  const Index size = Index{1} << 40;
  const Epochs order({{0, size / 2}, {size, size + size / 2}}, 1024, kSeed);
  EXPECT_EQ(order.largest(), size / 1024 - 2);
  std::set<Index> starts;
  Index second_half = 0;
  for (Index n = 0; n < 2000; ++n) {
    const Index start = order.start(size / 2048 + n);
    EXPECT_TRUE(start + 1025 <= size / 2 || (start >= size && start + 1025 <= size + size / 2));
    EXPECT_TRUE(starts.insert(start).second);
    second_half += start >= size ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(second_half), 1000, 120);
}

TEST(Epochs, reject_spans_shorter_than_a_window) {
  EXPECT_THROW(Epochs({{0, 16}, {20, 36}}, 16, kSeed), std::logic_error);
}

/// Returns the windows [first, first + count) of the order.
std::vector<Span> some_of(const ShuffledWindows& windows, Index first, Index count) {
  std::vector<Span> some;
  for (Index n = first; n < first + count; ++n) some.push_back(windows.window(n));
  return some;
}

/// Returns the first tokens of all windows.
std::vector<Index> all_of(const ShuffledWindows& windows) {
  std::vector<Index> begins;
  for (const Span& window : some_of(windows, 0, windows.size())) begins.push_back(window.begin);
  return begins;
}

TEST(ShuffledWindows, do_not_overlap_and_stay_within_their_span) {
  const ShuffledWindows windows({{0, 35}, {200, 230}}, {10, 10});
  EXPECT_THAT(all_of(windows), testing::UnorderedElementsAre(0, 10, 20, 200, 210, 220));
  for (const Span& window : some_of(windows, 0, 6)) EXPECT_EQ(window.size(), 10);
}

TEST(ShuffledWindows, of_a_short_span_are_one_shorter_window) {
  const ShuffledWindows windows({{100, 109}, {200, 202}, {300, 301}, {400, 400}}, {10, 10});
  EXPECT_THAT(some_of(windows, 0, windows.size()),
              testing::UnorderedElementsAre(Span{100, 109}, Span{200, 202}));
}

TEST(ShuffledWindows, share_tokens_if_the_stride_is_smaller) {
  EXPECT_THAT(all_of(ShuffledWindows({{0, 30}}, {10, 9})), testing::UnorderedElementsAre(0, 9, 18));
}

TEST(ShuffledWindows, with_tails_reach_the_last_token) {
  const auto windows = [](Index size) {
    const ShuffledWindows all({{0, size}}, {10, 9, true});
    return some_of(all, 0, all.size());
  };
  EXPECT_THAT(windows(19), testing::UnorderedElementsAre(Span{0, 10}, Span{9, 19}));
  EXPECT_THAT(windows(20), testing::UnorderedElementsAre(Span{0, 10}, Span{9, 19}, Span{18, 20}));
}

TEST(ShuffledWindows, are_not_in_order) {
  const std::vector<Index> starts = all_of(ShuffledWindows({{0, 1000}}, {10, 10}));
  EXPECT_EQ(starts.size(), 100u);
  EXPECT_FALSE(std::ranges::is_sorted(starts));
}

TEST(ShuffledWindows, are_sorted_by_the_numbers_of_the_stream_of_validation) {
  const RandomStream keys(0, "data/val");
  std::vector<Index> expected(1000);
  std::iota(expected.begin(), expected.end(), Index{0});
  std::ranges::stable_sort(expected, {},
                           [&](Index i) { return keys.bits(static_cast<std::uint64_t>(i)); });
  for (Index& window : expected) window *= 10;
  EXPECT_EQ(all_of(ShuffledWindows({{0, 10000}}, {10, 10})), expected);
}

TEST(ShuffledWindows, have_one_order_however_much_of_it_is_read_first) {
  const std::vector<Span> spans{{0, 1'000'000}, {2'000'000, 4'000'000}};
  const ShuffledWindows whole(spans, {5, 5});
  ASSERT_EQ(whole.size(), 600'000);
  const std::vector<Span> all = some_of(whole, 0, 600'000);
  std::set<Index> begins;
  for (const Span& window : all) begins.insert(window.begin);
  EXPECT_EQ(begins.size(), all.size());
  const ShuffledWindows by_parts(spans, {5, 5});  // 65,536 windows, then 400,000, then all
  for (const Index first : {0, 99'000, 599'000, 50'000}) {
    EXPECT_THAT(some_of(by_parts, first, 1000),
                testing::ElementsAreArray(std::span(all).subspan(first, 1000)));
  }
}

}  // namespace
}  // namespace difftape::run
