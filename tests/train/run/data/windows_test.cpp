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

TEST(HeldOut, cuts_the_row_of_held_out_tokens_into_equal_ranges_in_order) {
  const HeldOut parts({{100, 164}, {1000, 1064}}, {});
  EXPECT_TRUE(parts.domains().empty());
  for (Index i = 0; i < 64; ++i) {
    EXPECT_EQ(parts.origin(100 + i).group, i / 2);
    EXPECT_EQ(parts.origin(1000 + i).group, 32 + i / 2);
  }
}

TEST(HeldOut, unites_the_ranges_of_domains_of_any_size) {
  const HeldOut parts({{0, 6400 + 640}}, {{"large", {0, 6400}}, {"small", {6400, 7040}}});
  EXPECT_THAT(parts.domains(), ElementsAre("large", "small"));
  std::map<Index, Index> large, small;
  for (Index token = 0; token < 7040; ++token) {
    const RowOrigin origin = parts.origin(token);
    EXPECT_EQ(origin.domain, token < 6400 ? 0 : 1);
    ++(origin.domain == 0 ? large : small)[origin.group];
  }
  ASSERT_EQ(large.size(), 64u);
  for (Index group = 0; group < kLossGroups; ++group) {
    EXPECT_EQ(large[group], 100);
    EXPECT_EQ(small[group], 10);
  }
}

TEST(HeldOut, continues_a_domain_that_appears_again) {
  const HeldOut parts({{0, 20}, {30, 256}},
                      {{"a", {0, 10}}, {"b", {10, 40}}, {"a", {40, 158}}, {"b", {158, 300}}});
  EXPECT_EQ(parts.domains(), (std::vector<std::string>{"a", "b"}));
  // a has 10 + 118 = 128 held-out tokens, b 10 + 10 + 98 = 118.
  EXPECT_EQ(parts.origin(9).group, 4);
  EXPECT_EQ(parts.origin(40).group, 5);
  EXPECT_EQ(parts.origin(157).group, 63);
  EXPECT_EQ(parts.origin(30).domain, 1);
  EXPECT_EQ(parts.origin(30).group, 64 * 10 / 118);
  EXPECT_EQ(parts.origin(255).group, 63);
}

TEST(HeldOut, of_fewer_tokens_than_groups_leaves_groups_empty) {
  const HeldOut parts({{0, 4}}, {});
  for (Index token = 0; token < 4; ++token) EXPECT_EQ(parts.origin(token).group, 16 * token);
}

/// A source whose token i is i.
struct Counting : TokenSource {
  explicit Counting(Index size) : size_(size) {
    type = unit = "tokens";
    from = "the row";
    vocab_size = size;
  }
  Index size() const override { return size_; }
  void copy(Index begin, std::span<std::int32_t> into) const override {
    std::iota(into.begin(), into.end(), static_cast<std::int32_t>(begin));
  }

 private:
  Index size_;
};

std::unique_ptr<ValidationData> whole(Index size, Index seq_len, Index batch_size) {
  return make_whole_row(std::make_shared<Counting>(size), seq_len, batch_size);
}

RC_GTEST_PROP(WholeRow, scores_every_token_but_the_first_once_after_the_token_before_it, ()) {
  const Index size = *rc::gen::inRange<Index>(2, 400);
  const Index seq_len = *rc::gen::inRange<Index>(1, 40);
  const Index batch_size = *rc::gen::inRange<Index>(1, 9);
  const auto data = whole(size, seq_len, batch_size);
  std::map<std::int32_t, int> scored;
  for (Index i = 0; i < data->val_batches(); ++i) {
    const Batch batch = data->val_batch(i);
    RC_ASSERT(batch.batch >= 1 && batch.batch <= batch_size);
    RC_ASSERT(batch.seq >= 1 && batch.seq <= seq_len);
    const auto inputs = batch.inputs(), targets = batch.targets();
    for (size_t t = 0; t < targets.size(); ++t) {
      RC_ASSERT(targets[t] == inputs[t] + 1);
      ++scored[targets[t]];
    }
  }
  RC_ASSERT(std::ssize(scored) == size - 1);
  for (const auto& [token, times] : scored) RC_ASSERT(token > 0 && times == 1);
}

TEST(WholeRow, ends_with_the_shorter_sequence) {
  const auto data = whole(2 * 8 + 4, 8, 4);
  ASSERT_EQ(data->val_batches(), 2);
  EXPECT_EQ(data->val_batch(0).batch, 2);
  EXPECT_THAT(data->val_batch(1).tokens, ElementsAre(16, 17, 18, 19));
  EXPECT_EQ(whole(2 * 8 + 1, 8, 4)->val_batches(), 1) << "nothing is left";
  EXPECT_EQ(data->info()["tokens"], 20);
}

TEST(WholeRow, needs_at_least_two_tokens) {
  EXPECT_THAT(
      [] { whole(1, 8, 4); },
      ThrowsMessage<DataError>("the row has 1 tokens, but must have at least two; give more data"));
}
}  // namespace
}  // namespace difftape::run
