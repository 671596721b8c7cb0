#include <map>

#include "tests/train/run/data/tasks/task_data.h"

namespace difftape::run {
namespace {

using test::make_task;
using test::row_of;

// Tokens: 12 keys, 10 values from 12 on, 6 of noise from 22 on.
DataConfig noisy_data(double noise, Index seq_len = 64) {
  return {.type = DataKind::noisy_recall,
          .path = {},
          .seq_len = seq_len,
          .batch_size = 50,
          .noisy_recall = {.keys = 12, .values = 10, .filler = 6, .noise = noise}};
}

TEST(NoisyRecall, scores_the_values_of_keys_that_were_there_before) {
  for (const Index seq_len : {64, 63, 3}) {
    const auto data = make_task(noisy_data(0.4, seq_len));
    for (Index step = 0; step < 20; ++step) {
      const Batch batch = data->train_batch(step, 0);
      for (Index b = 0; b < batch.batch; ++b) {
        const auto row = row_of(batch, b);
        std::map<std::int32_t, std::int32_t> value;
        for (Index t = 0; t < seq_len; ++t) {
          const std::int32_t token = row[static_cast<size_t>(t)];
          const std::int32_t next = row[static_cast<size_t>(t + 1)];
          EXPECT_EQ(test::is_scored(batch, b, t), token < 12 && value.contains(token));
          if (token >= 12) continue;
          EXPECT_GE(next, 12);
          EXPECT_LT(next, 22);
          EXPECT_EQ(value.emplace(token, next).first->second, next);
        }
        EXPECT_TRUE(test::is_scored(batch, b, seq_len - 1)) << "the last pair is a repetition";
      }
    }
  }
}

TEST(NoisyRecall, noise_takes_the_place_of_pairs_with_its_probability) {
  for (const double noise : {0.2, 0.5, 0.8}) {
    const auto data = make_task(noisy_data(noise));
    double noisy = 0;
    for (Index step = 0; step < 40; ++step) {
      const Batch batch = data->train_batch(step, 0);
      for (Index b = 0; b < batch.batch; ++b) {
        const auto row = row_of(batch, b);
        EXPECT_GE(row[0], 22) << "65 tokens are 32 slots and one of noise";
        for (size_t slot = 0; slot < 31; ++slot) {
          EXPECT_EQ(row[1 + 2 * slot] >= 22, row[2 + 2 * slot] >= 22);
          noisy += row[1 + 2 * slot] >= 22;
        }
        EXPECT_LT(row[63], 12) << "the last slot asks";
      }
    }
    // One slot of the 31 is a pair for sure.
    EXPECT_LT(test::deviations(noisy, 2000 * 30, noise), 4) << noise;
  }
}

TEST(NoisyRecall, keys_values_and_noise_are_drawn_uniformly) {
  const auto data = make_task(noisy_data(0.5));
  std::vector<double> first_keys(12, 0.0), first_values(10, 0.0), noise(6, 0.0);
  for (Index step = 0; step < 60; ++step) {
    const Batch batch = data->train_batch(step, 0);
    for (Index b = 0; b < batch.batch; ++b) {
      const auto row = row_of(batch, b);
      ++noise[static_cast<size_t>(row[0] - 22)];
      const auto key = std::find_if(row.begin(), row.end(), [](auto token) { return token < 12; });
      ++first_keys[static_cast<size_t>(key[0])];
      ++first_values[static_cast<size_t>(key[1] - 12)];
    }
  }
  const auto p_of = [](const std::vector<double>& counts) {
    return test::chi_square_p(
        counts, std::vector<double>(counts.size(), 3000.0 / static_cast<double>(counts.size())));
  };
  EXPECT_GT(p_of(first_keys), 0.001);
  EXPECT_GT(p_of(first_values), 0.001);
  EXPECT_GT(p_of(noise), 0.001);
}

TEST(NoisyRecall, answers_are_sorted_by_the_slots_since_the_key_was_seen) {
  const auto data = make_task(noisy_data(0.2));
  EXPECT_THAT(data->grid().rows, testing::ElementsAre("noise20"));
  const Batch batch = data->val_batch(0);
  ASSERT_EQ(static_cast<Index>(batch.answers.size()), batch.scored_targets());
  for (const AnswerSpan& answer : batch.answers) {
    const auto row = row_of(batch, answer.row);
    Index last = answer.targets.begin - 2;
    while (row[static_cast<size_t>(last)] != row[static_cast<size_t>(answer.targets.begin)]) {
      last -= 2;
      ASSERT_GE(last, 0);
    }
    const Index gap = (answer.targets.begin - last) / 2 - 1;
    const Index first = answer.grid_column == 0 ? 0 : Index{1} << (answer.grid_column - 1);
    EXPECT_GE(gap, first);
    EXPECT_LT(gap, std::max<Index>(1, 2 * first));
  }
}

}  // namespace
}  // namespace difftape::run
