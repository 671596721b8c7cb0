#include "train/run/data/tasks/task.h"

#include "tests/train/run/data/tasks/task_data.h"

namespace difftape::run {
namespace {

using test::make_task;
using test::row_of;

DataConfig backcopy_data(Index seq_len = 64, Index symbols = 20, Index triggers = 3) {
  return {.type = DataKind::backcopy,
          .path = {},
          .seq_len = seq_len,
          .batch_size = 50,
          .backcopy = {.symbols = symbols, .triggers = triggers}};
}

TEST(Backcopy, repeats_the_token_before_a_trigger) {
  const Bigrams bigrams = make_bigrams(20, 3);
  const Batch batch = make_task(backcopy_data())->train_batch(0, 0);
  Index copies = 0;
  for (Index b = 0; b < batch.batch; ++b) {
    const auto row = row_of(batch, b);
    EXPECT_EQ(row[0], 0);
    EXPECT_FALSE(bigrams.is_trigger(row[1] - 1)) << "a row does not begin with a trigger";
    for (size_t t = 2; t < row.size(); ++t) {
      if (!bigrams.is_trigger(row[t - 1] - 1)) continue;
      EXPECT_EQ(row[t], row[t - 2]);
      ++copies;
    }
    for (size_t t = 1; t < row.size(); ++t) EXPECT_GE(row[t], 1) << "only the first token is 0";
  }
  EXPECT_GT(copies, 200);
}

TEST(Backcopy, follows_the_table_elsewhere) {
  const Bigrams bigrams = make_bigrams(8, 2);
  const auto data = make_task(backcopy_data(64, 8, 2));
  std::vector<std::vector<double>> counts(8, std::vector<double>(8, 0.0));
  for (Index step = 0; step < 60; ++step) {
    const Batch batch = data->train_batch(step, 0);
    for (Index b = 0; b < batch.batch; ++b) {
      const auto row = row_of(batch, b);
      for (size_t t = 1; t + 1 < row.size(); ++t)
        ++counts[static_cast<size_t>(row[t] - 1)][static_cast<size_t>(row[t + 1] - 1)];
    }
  }
  for (Index v = 0; v < 8; ++v) {
    if (bigrams.is_trigger(v)) continue;
    const auto& found = counts[static_cast<size_t>(v)];
    const double total = std::accumulate(found.begin(), found.end(), 0.0);
    ASSERT_GT(total, 1000);
    std::vector<double> expected;
    for (size_t w = 0; w < 8; ++w) expected.push_back(total * bigrams.row(v)[w]);
    EXPECT_GT(test::chi_square_p(found, expected), 0.001) << "after symbol " << v;
  }
}

TEST(Backcopy, shares_one_table_among_seeds_with_its_most_frequent_symbols_as_triggers) {
  const Bigrams bigrams = make_bigrams(20, 3);
  EXPECT_EQ(std::ranges::count(bigrams.triggers, 1), 3);
  for (Index v = 0; v < 20; ++v)
    EXPECT_NEAR(std::accumulate(bigrams.row(v), bigrams.row(v) + 20, 0.0), 1, 1e-12);
  EXPECT_EQ(make_task(backcopy_data(), 1)->info(), make_task(backcopy_data(), 2)->info());
  // The plain chain of the table visits each trigger more often than any other symbol.
  std::vector<double> p(20, 0.05);
  for (int i = 0; i < 1000; ++i) {
    std::vector<double> next(20, 0.0);
    for (Index v = 0; v < 20; ++v)
      for (size_t w = 0; w < 20; ++w) next[w] += p[static_cast<size_t>(v)] * bigrams.row(v)[w];
    p = next;
  }
  double rarest_trigger = 1, commonest_other = 0;
  for (Index v = 0; v < 20; ++v) {
    const double share = p[static_cast<size_t>(v)];
    if (bigrams.is_trigger(v)) rarest_trigger = std::min(rarest_trigger, share);
    if (!bigrams.is_trigger(v)) commonest_other = std::max(commonest_other, share);
  }
  EXPECT_GT(rarest_trigger, commonest_other);
}

/// Accumulates the mean and its standard error.
struct Mean {
  double sum = 0, squares = 0, count = 0;
  void add(double x) {
    sum += x;
    squares += x * x;
    ++count;
  }
  double value() const { return sum / count; }
  double error() const { return std::sqrt((squares / count - value() * value()) / count); }
};

TEST(Backcopy, best_loss_and_accuracy_follow_from_the_true_probabilities) {
  for (const Index seq_len : {5, 64}) {
    const Bigrams bigrams = make_bigrams(20, 3);
    const auto data = make_task(backcopy_data(seq_len));
    Mean loss, accuracy;  // of rows, which are independent
    for (Index step = 0; step < 100; ++step) {
      const Batch batch = data->train_batch(step, 0);
      for (Index b = 0; b < batch.batch; ++b) {
        const auto row = row_of(batch, b);
        double row_loss = std::log(17.0), row_hits = 1 / 17.0;  // the first symbol: one of 17
        for (size_t t = 1; t < static_cast<size_t>(seq_len); ++t) {
          const Index now = row[t] - 1, next = row[t + 1] - 1;
          const double* p = bigrams.row(now);
          row_loss -= bigrams.is_trigger(now) ? 0 : std::log(p[next]);
          row_hits += bigrams.is_trigger(now) || std::max_element(p, p + 20) - p == next;
        }
        loss.add(row_loss / static_cast<double>(seq_len));
        accuracy.add(row_hits / static_cast<double>(seq_len));
      }
    }
    EXPECT_LT(loss.error(), 0.01);
    EXPECT_NEAR(data->best()->loss, loss.value(), 4 * loss.error());
    EXPECT_NEAR(data->best()->accuracy, accuracy.value(), 4 * accuracy.error());
  }
}

TEST(Backcopy, needs_a_symbol_that_is_not_a_trigger) {
  EXPECT_THAT(test::errors_of(backcopy_data(64, 4, 4)),
              HasSubstr("data.backcopy.triggers: 4 triggers of 4 symbols leave nothing to "
                        "copy; lower data.backcopy.triggers"));
  const Batch batch = make_task(backcopy_data(8, 4, 3))->train_batch(0, 0);
  EXPECT_EQ(row_of(batch, 0)[1], row_of(batch, 1)[1]) << "the only symbol that is not a trigger";
}

}  // namespace
}  // namespace difftape::run
