#include "train/run/data/windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/error.h"

namespace difftape::run {
namespace {

/// Token i is i.
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
  EXPECT_THAT(data->val_batch(1).tokens, testing::ElementsAre(16, 17, 18, 19));
  EXPECT_EQ(whole(2 * 8 + 1, 8, 4)->val_batches(), 1) << "nothing is left";
  EXPECT_EQ(data->info()["tokens"], 20);
}

TEST(WholeRow, needs_a_token_to_predict) {
  EXPECT_THAT([] { whole(1, 8, 4); },
              testing::ThrowsMessage<DataError>("the row is 1 tokens long; need two, the second of "
                                                "which is predicted"));
}

}  // namespace
}  // namespace difftape::run
