// Tests the validation windows: which tokens they have, in which order and domain.
#include "train/run/data/held_out.h"

#include <rapidcheck/gtest.h>

#include "autograd/ops.h"
#include "tests/support/test.h"
#include "train/run/data/windows.h"

namespace difftape::run {
namespace {

TEST(HeldOut, without_domains_has_one_that_is_unnamed) {
  const HeldOut parts({{100, 164}, {1000, 1064}}, {});
  EXPECT_TRUE(parts.domains().empty());
  EXPECT_EQ(parts.domain_of(100), 0);
  EXPECT_EQ(parts.domain_of(1063), 0);
}

TEST(HeldOut, continues_a_domain_that_appears_again) {
  const HeldOut parts({{0, 20}, {30, 256}},
                      {{"a", {0, 10}}, {"b", {10, 40}}, {"a", {40, 158}}, {"b", {158, 300}}});
  EXPECT_THAT(parts.domains(), ElementsAre("a", "b"));
  for (const Index token : {0, 9, 40, 157}) EXPECT_EQ(parts.domain_of(token), 0) << token;
  for (const Index token : {10, 19, 30, 39, 158, 255})
    EXPECT_EQ(parts.domain_of(token), 1) << token;
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
    RC_ASSERT(batch.seq == seq_len);
    const auto inputs = batch.inputs(), targets = batch.targets();
    for (size_t t = 0; t < targets.size(); ++t) {
      if (targets[t] == kIgnoreIndex) continue;
      RC_ASSERT(targets[t] == inputs[t] + 1);
      ++scored[targets[t]];
    }
  }
  RC_ASSERT(std::ssize(scored) == size - 1);
  for (const auto& [token, times] : scored) RC_ASSERT(token > 0 && times == 1);
}

TEST(WholeRow, has_the_remaining_tokens_in_a_padded_sequence) {
  const auto data = whole(2 * 8 + 4, 8, 4);
  ASSERT_EQ(data->val_batches(), 1);
  const Batch batch = data->val_batch(0);
  ASSERT_EQ(batch.batch, 3);
  EXPECT_EQ(batch.scored_targets(), 19);
  EXPECT_EQ(whole(2 * 8 + 1, 8, 4)->val_batch(0).batch, 2) << "nothing is left";
  EXPECT_EQ(data->info()["tokens"], 20);
}

TEST(WholeRow, needs_at_least_two_tokens) {
  EXPECT_THAT([] { whole(1, 8, 4); },
              ThrowsMessage<DataError>("the row: no file has two tokens, but validation needs a "
                                       "token and the next; give more data"));
}

/// Returns a source of files of these sizes, each of which is a domain.
std::shared_ptr<Counting> files_of(const std::vector<std::pair<std::string, Index>>& files) {
  Index size = 0;
  std::vector<SourcePart> parts;
  for (const auto& [domain, tokens] : files) {
    parts.push_back({domain, {size, size + tokens}});
    size += tokens;
  }
  auto source = std::make_shared<Counting>(size);
  source->parts = parts;
  return source;
}

/// Returns the scored tokens of all windows by domain.
std::map<Index, std::vector<std::vector<Index>>> windows_by_domain(const HeldOutWindows& windows) {
  std::map<Index, std::vector<std::vector<Index>>> all;
  for (Index i = 0; i < windows.batches(); ++i) {
    const Batch batch = windows.batch(i);
    const std::vector<Index> domains = windows.domains_of(i);
    for (Index b = 0; b < batch.batch; ++b) {
      std::vector<Index> tokens{batch.tokens[b * (batch.seq + 1)]};
      for (const std::int32_t target : batch.rows({b, b + 1}).targets())
        if (target != kIgnoreIndex) tokens.push_back(target);
      all[domains[b]].push_back(std::move(tokens));
    }
  }
  for (auto& [domain, rows] : all) std::ranges::sort(rows);
  return all;
}

TEST(HeldOutWindows, have_every_window_of_every_file_once_for_batches_of_1_to_100) {
  const auto source = files_of({{"a", 45}, {"short", 5}, {"b", 30}, {"a", 8}, {"b", 1}});
  for (Index batch_size = 1; batch_size <= 100; ++batch_size) {
    const HeldOutWindows windows(source, {{0, 89}}, {10, 10}, batch_size, true);
    EXPECT_EQ(windows.size(), 9);
    const auto found = windows_by_domain(windows);
    const auto row = [](Index begin, Index size) {
      std::vector<Index> tokens(size);
      std::iota(tokens.begin(), tokens.end(), begin);
      return tokens;
    };
    ASSERT_THAT(windows.domains(), ElementsAre("a", "short", "b"));
    EXPECT_THAT(found.at(0),
                ElementsAre(row(0, 10), row(10, 10), row(20, 10), row(30, 10), row(80, 8)));
    EXPECT_THAT(found.at(1), ElementsAre(row(45, 5)));
    EXPECT_THAT(found.at(2), ElementsAre(row(50, 10), row(60, 10), row(70, 10)));
  }
}

TEST(HeldOutWindows, take_every_domain_in_proportion_from_the_first_batch_on) {
  const auto source = files_of({{"large", 6000}, {"middle", 3000}, {"small", 10}});
  const HeldOutWindows windows(source, {{0, 9010}}, {10, 10}, 30, true);
  std::vector<Index> taken(3);
  for (Index i = 0; i < 10; ++i) {
    for (const Index domain : windows.domains_of(i)) ++taken[domain];
    EXPECT_EQ(taken[2], 1);
    EXPECT_NEAR(static_cast<double>(taken[0]), 2 * static_cast<double>(taken[1]), 2);
  }
}

TEST(HeldOutWindows, of_one_file_are_in_the_order_of_the_shuffle) {
  const auto source = std::make_shared<Counting>(1000);
  const HeldOutWindows windows(source, {{0, 1000}}, {10, 10}, 7, true);
  const ShuffledWindows shuffle({{0, 1000}}, {10, 10});
  for (Index n = 0; n < 100; ++n)
    EXPECT_EQ(windows.batch(n / 7).tokens[n % 7 * 10], shuffle.window(n).begin);
  EXPECT_EQ(windows.batch(14).batch, 2);
  EXPECT_TRUE(windows.batch(3).scored.empty());
}

TEST(HeldOutWindows, of_a_domain_without_a_target_are_an_error) {
  EXPECT_THAT(
      [] {
        HeldOutWindows(files_of({{"a", 20}, {"empty", 1}}), {{0, 21}}, {10, 10}, 2, true);
      },
      ThrowsMessage<DataError>(
          "the row, domain empty: no file has two tokens, but validation needs "
          "a token and the next; give more data, or leave the domain out"));
}

}  // namespace
}  // namespace difftape::run
