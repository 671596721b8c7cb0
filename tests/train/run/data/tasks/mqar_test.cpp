
#include "tests/train/run/data/tasks/task_data.h"
#include "tests/train/run/loop/tiny.h"
#include "train/run/loop/step.h"
#include "train/run/loop/train_state.h"

namespace difftape::run {
namespace {

using test::make_task;
using test::row_of;

DataConfig mqar_data(Index seq_len = 64, Index pairs = 4, double gap_power = 0.01) {
  return {.type = DataKind::mqar,
          .path = {},
          .seq_len = seq_len,
          .batch_size = 50,
          .mqar = {.keys = 80, .values = 90, .pairs = pairs, .gap_power = gap_power}};
}

/// Returns the gap of each pair of a row, from its scored positions.
std::vector<Index> gaps_of(const Batch& batch, Index b, Index pairs) {
  const auto row = row_of(batch, b);
  std::vector<Index> gaps(static_cast<size_t>(pairs), -1);
  for (Index t = 0; t < batch.seq; ++t) {
    if (!test::is_scored(batch, b, t)) continue;
    const auto key = std::find(row.begin(), row.begin() + 2 * pairs, row[static_cast<size_t>(t)]);
    gaps[static_cast<size_t>((key - row.begin()) / 2)] = (t - 2 * pairs) / 2;
  }
  return gaps;
}

struct MqarSizes : testing::TestWithParam<std::pair<Index, Index>> {};

TEST_P(MqarSizes, every_key_is_queried_once_and_only_its_value_is_scored) {
  const auto [seq_len, pairs] = GetParam();
  const Batch batch = make_task(mqar_data(seq_len, pairs))->train_batch(0, 0);
  for (Index b = 0; b < 5; ++b) {
    const auto row = row_of(batch, b);
    std::map<std::int32_t, std::int32_t> value;
    std::map<std::int32_t, int> asked;
    for (size_t i = 0; i < static_cast<size_t>(pairs); ++i) {
      EXPECT_LT(row[2 * i], 80);
      EXPECT_GE(row[2 * i + 1], 80);
      EXPECT_TRUE(value.emplace(row[2 * i], row[2 * i + 1]).second) << "keys are different";
    }
    for (Index t = 0; t < seq_len; ++t) {
      const std::int32_t token = row[static_cast<size_t>(t)];
      const bool is_query = t >= 2 * pairs && value.contains(token);
      EXPECT_EQ(test::is_scored(batch, b, t), is_query) << t;
      if (!is_query) continue;
      EXPECT_EQ(t % 2, 0);
      EXPECT_EQ(row[static_cast<size_t>(t + 1)], value[token]);
      ++asked[token];
    }
    EXPECT_EQ(asked.size(), static_cast<size_t>(pairs));
    for (const auto& [key, times] : asked) EXPECT_EQ(times, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(OfZoology, MqarSizes,
                         testing::Values(std::pair<Index, Index>{64, 4},
                                         std::pair<Index, Index>{128, 8},
                                         std::pair<Index, Index>{256, 16},
                                         std::pair<Index, Index>{512, 64},
                                         std::pair<Index, Index>{17, 4}));

/// Returns p(g) of the first pair drawn, (g + 1)^(a - 1) over its sum.
std::vector<double> law(Index count, double a) {
  std::vector<double> p;
  double sum = 0;
  for (Index g = 0; g < count; ++g) sum += std::pow(static_cast<double>(g + 1), a - 1);
  for (Index g = 0; g < count; ++g) p.push_back(std::pow(static_cast<double>(g + 1), a - 1) / sum);
  return p;
}

TEST(Mqar, gaps_follow_the_power_law) {
  for (const double a : {0.01, 0.5, 1.0}) {
    const auto data = make_task(mqar_data(64, 4, a));
    const std::vector<double> p = law(28, a);
    std::vector<double> counts(28, 0.0), expected;
    for (Index step = 0; step < 120; ++step) {
      const Batch batch = data->train_batch(step, 0);
      for (Index b = 0; b < 50; ++b) ++counts[static_cast<size_t>(gaps_of(batch, b, 4)[0])];
    }
    for (const double share : p) expected.push_back(6000 * share);
    EXPECT_GT(test::chi_square_p(counts, expected), 0.001) << "a = " << a;
  }
}

TEST(Mqar, a_later_pair_draws_from_the_remaining_gaps) {
  const auto data = make_task(mqar_data(64, 2));
  const std::vector<double> p = law(30, 0.01);
  std::vector<double> counts(30, 0.0), expected(30, 0.0);
  for (Index step = 0; step < 120; ++step) {
    const Batch batch = data->train_batch(step, 0);
    for (Index b = 0; b < 50; ++b) ++counts[static_cast<size_t>(gaps_of(batch, b, 2)[1])];
  }
  for (size_t g = 0; g < 30; ++g) {
    for (size_t first = 0; first < 30; ++first)
      if (first != g) expected[g] += 6000 * p[first] * p[g] / (1 - p[first]);
  }
  EXPECT_GT(test::chi_square_p(counts, expected), 0.001);
}

TEST(Mqar, answers_are_sorted_into_gaps_of_powers_of_two) {
  const auto data = make_task(mqar_data());
  EXPECT_THAT(data->grid().rows, ElementsAre("pairs4"));
  EXPECT_THAT(data->grid().columns,
              ElementsAre("gap0", "gap1", "gap2-3", "gap4-7", "gap8-15", "gap16-31"));
  const Batch batch = data->val_batch(0);
  for (const AnswerSpan& answer : batch.answers) {
    const Index gap = (answer.targets.begin - 8) / 2;
    const Index first = answer.grid_column == 0 ? 0 : Index{1} << (answer.grid_column - 1);
    EXPECT_GE(gap, first);
    EXPECT_LT(gap, std::max<Index>(1, 2 * first));
  }
}

TEST(Mqar, impossible_sizes_are_errors_with_a_remedy) {
  EXPECT_THAT(test::errors_of(mqar_data(64, 17)),
              HasSubstr("data.mqar.pairs: 17 pairs and their queries take 68 tokens, but seq_len "
                        "is 64; lower data.mqar.pairs or raise data.seq_len"));
  EXPECT_THAT(test::errors_of(mqar_data(1024, 85)),
              HasSubstr("data.mqar.pairs: 85 pairs need as many different keys, but there are 80; "
                        "raise data.mqar.keys"));
}

TEST(Mqar, a_small_model_learns_it_far_beyond_chance) {
  Config config;
  config.model = {.d_model = 32,
                  .num_layers = 2,
                  .num_heads = 2,
                  .d_ff = 64,
                  .max_seq_len = 8,
                  .vocab_size = 12};
  config.data = {.type = DataKind::mqar,
                 .path = {},
                 .seq_len = 8,
                 .batch_size = 64,
                 .mqar = {.keys = 4, .values = 8, .pairs = 2}};
  config.model.init.preset = InitPreset::gpt2;
  config.optim.lr = 1e-2;
  config.optim.min_lr = 1e-3;
  config.optim.warmup_steps = 20;
  config.train.steps = 500;
  const test::Threads one(1);
  TrainState state(config);
  EXPECT_NEAR(state.validate().loss, std::log(12), 0.2);
  while (state.step < config.train.steps) ASSERT_FALSE(train_step(state).diverged);
  const Validation after = state.validate();
  EXPECT_EQ(after.metrics.front().first, "val/accuracy");
  EXPECT_GT(after.metrics.front().second, 0.75) << "guessing one of the two values gives 0.5";
  EXPECT_LT(after.loss, 0.55) << "guessing costs log 2, 0.69";
}

}  // namespace
}  // namespace difftape::run
