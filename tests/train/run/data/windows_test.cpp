#include "train/run/data/windows.h"

#include <rapidcheck/gtest.h>

#include "tests/support/test.h"

namespace difftape::run {
namespace {

Index total(const std::vector<Span>& spans) {
  Index sum = 0;
  for (const Span& span : spans) sum += span.size();
  return sum;
}

/// Returns the spans of both parts in order, and expects them to cover [0, size) without overlap.
std::vector<Span> all_of(const Split& split) {
  std::vector<Span> all = split.train;
  all.insert(all.end(), split.val.begin(), split.val.end());
  std::ranges::sort(all, {}, &Span::begin);
  return all;
}

RC_GTEST_PROP(Split, covers_every_token_once_with_room_for_a_window_on_both_sides, ()) {
  const Index window = *rc::gen::inRange<Index>(2, 300);
  const Index size = 2 * window + *rc::gen::inRange<Index>(0, 100000);
  const double val_fraction = *rc::gen::inRange(1, 100) / 100.0;
  const Split split = split_by_blocks(size, window, val_fraction);
  Index at = 0;
  for (const Span& span : all_of(split)) {
    RC_ASSERT(span.begin == at);
    at = span.end;
  }
  RC_ASSERT(at == size);
  RC_ASSERT(std::ranges::max(split.train, {}, &Span::size).size() >= window);
  for (const Span& span : split.val) RC_ASSERT(span.size() >= window);
}

TEST(Split, holds_out_the_given_fraction_in_blocks_of_16384) {
  const Split split = split_by_blocks(8669345, 257, 0.05);  // 529 blocks and a remainder
  EXPECT_EQ(total(split.val), 26 * 16384);
  for (const Span& span : split.val) {
    EXPECT_EQ(span.begin % 16384, 0);
    EXPECT_EQ(span.size() % 16384, 0);
  }
  EXPECT_GT(split.val.size(), 20u) << "the blocks are spread over the text";
  EXPECT_EQ(split.train.back().end, 8669345);
}

TEST(Split, of_a_short_text_uses_smaller_blocks) {
  EXPECT_EQ(total(split_by_blocks(1000, 17, 0.05).val), 50);
  EXPECT_EQ(total(split_by_blocks(1000, 101, 0.05).val), 101) << "never less than a window";
  EXPECT_EQ(total(split_by_blocks(1000, 17, 0.9).val), 900);
  const Split smallest = split_by_blocks(34, 17, 0.05);
  EXPECT_EQ(total(smallest.val), 17);
  EXPECT_EQ(total(smallest.train), 17);
}

TEST(Split, is_the_same_every_time) {
  EXPECT_EQ(split_by_blocks(500000, 65, 0.1).val, split_by_blocks(500000, 65, 0.1).val);
}

TEST(Split, rejects_less_than_two_windows) {
  EXPECT_THROW(split_by_blocks(33, 17, 0.05), std::logic_error);
}

}  // namespace
}  // namespace difftape::run
