
#include "tests/train/run/data/tasks/task_data.h"

namespace difftape::run {
namespace {

using test::make_task;
using test::row_of;

constexpr std::int32_t kMarker = 0, kDigit = 1, kCity = 11;

DataConfig needles_data() {
  return {.type = DataKind::needles,
          .path = {},
          .seq_len = 96,
          .batch_size = 40,
          .needles = {.cities = 20, .facts = {1, 6}, .queries = {1, 2}, .digits = 3, .filler = 8}};
}
bool is_digit(std::int32_t token) { return token >= kDigit && token < kCity; }
bool is_city(std::int32_t token) { return token >= kCity && token < kCity + 20; }

/// Number and position of each city in the tokens.
struct Read {
  std::map<std::int32_t, std::vector<std::int32_t>> numbers;
  std::map<std::int32_t, Index> places;
};
Read read_facts(std::span<const std::int32_t> context) {
  Read read;
  for (size_t t = 0; t < context.size(); ++t) {
    if (!is_city(context[t])) continue;
    EXPECT_FALSE(read.numbers.contains(context[t])) << "cities are different";
    read.numbers[context[t]] = {context.begin() + static_cast<std::ptrdiff_t>(t) + 1,
                                context.begin() + static_cast<std::ptrdiff_t>(t) + 4};
    read.places[context[t]] = static_cast<Index>(t);
  }
  return read;
}

Index questions_of(std::span<const std::int32_t> row) { return std::ranges::count(row, kMarker); }

TEST(Needles, every_question_has_its_number_in_the_context_and_only_digits_are_scored) {
  const auto data = make_task(needles_data());
  for (const Batch& batch : {data->train_batch(0, 0), data->val_batch(0)}) {
    for (Index b = 0; b < batch.batch; ++b) {
      const auto row = row_of(batch, b);
      const Index questions = questions_of(row), begin = 97 - 5 * questions;
      const Read facts = read_facts(row.first(static_cast<size_t>(begin)));
      EXPECT_EQ(facts.numbers.size(), questions == 1 ? 1u : 6u);
      std::set<std::int32_t> asked;
      for (Index q = 0; q < questions; ++q) {
        const auto question = row.subspan(static_cast<size_t>(begin + 5 * q), 5);
        EXPECT_EQ(question[0], kMarker);
        EXPECT_TRUE(asked.insert(question[1]).second) << "a city is queried once";
        EXPECT_THAT(facts.numbers.at(question[1]),
                    testing::ElementsAreArray(question.subspan(2, 3)));
      }
      for (Index t = 0; t < 96; ++t) {
        const bool digit_of_question = t + 1 >= begin && is_digit(row[static_cast<size_t>(t + 1)]);
        EXPECT_EQ(test::is_scored(batch, b, t), digit_of_question) << "row " << b << ", " << t;
      }
    }
  }
}

TEST(Needles, a_query_points_to_its_fact_and_noise_is_the_rest_of_the_context) {
  const Batch batch = make_task(needles_data())->val_batch(0);
  ASSERT_EQ(batch.queries.size(), static_cast<size_t>(batch.scored_targets()));
  for (const RetrievalTarget& query : batch.queries) {
    const auto row = row_of(batch, query.row);
    EXPECT_TRUE(test::is_scored(batch, query.row, query.position));
    EXPECT_EQ(query.answer.size(), 4);
    EXPECT_TRUE(is_city(row[static_cast<size_t>(query.answer.begin)]));
    const std::vector<std::int32_t> answer(row.begin() + query.answer.begin + 1,
                                           row.begin() + query.answer.end);
    EXPECT_THAT(answer, testing::Contains(row[static_cast<size_t>(query.position + 1)]));
    EXPECT_EQ(query.noise.begin, 0);
    EXPECT_EQ(row[static_cast<size_t>(query.noise.end)], kMarker) << "the questions begin here";
    EXPECT_LE(query.answer.end, query.noise.end);
    EXPECT_GT(query.position, query.noise.end);
  }
}

TEST(Needles, validation_covers_every_setting_at_every_depth_alike) {
  const auto data = make_task(needles_data());
  const Batch batch = data->val_batch(0);
  EXPECT_THAT(data->grid().rows, ElementsAre("n1", "n6"));
  EXPECT_THAT(data->grid().columns,
              ElementsAre("depth0", "depth25", "depth50", "depth75", "depth100"));
  std::map<std::pair<Index, Index>, int> cells;
  ASSERT_EQ(batch.answers.size(), 40u);
  for (const AnswerSpan& answer : batch.answers) {
    ++cells[{answer.grid_row, answer.grid_column}];
    const auto row = row_of(batch, answer.row);
    const Index questions = questions_of(row), context = 97 - 5 * questions;
    EXPECT_EQ(answer.grid_row, questions - 1);
    EXPECT_EQ(answer.targets, (Span{context, 96}));
    const Read facts = read_facts(row.first(static_cast<size_t>(context)));
    const double place =
        static_cast<double>(facts.places.at(row[static_cast<size_t>(context + 1)]));
    const double share = place / static_cast<double>(context - 4);
    EXPECT_NEAR(share, 0.25 * static_cast<double>(answer.grid_column), 0.04)
        << "the city queried first is at the depth";
  }
  EXPECT_EQ(cells.size(), 10u);
  for (const auto& [cell, count] : cells) EXPECT_EQ(count, 4);
}

TEST(Needles, training_places_facts_anywhere_with_the_same_probability) {
  DataConfig one = needles_data();
  one.needles.facts = {6};
  one.needles.queries = {2};
  one.batch_size = 100;
  const auto data = make_task(one);
  std::vector<double> asked(21, 0.0), any(21, 0.0);  // 87 tokens of context: 21 slots and 3 tokens
  for (Index step = 0; step < 40; ++step) {
    const Batch batch = data->train_batch(step, 0);
    for (Index b = 0; b < batch.batch; ++b) {
      const auto row = row_of(batch, b);
      const Read facts = read_facts(row.first(87));
      for (const auto& [city, place] : facts.places) {
        EXPECT_EQ(place % 4, 3);
        ++any[static_cast<size_t>(place / 4)];
      }
      ++asked[static_cast<size_t>(facts.places.at(row[88]) / 4)];
    }
  }
  EXPECT_GT(test::chi_square_p(asked, std::vector<double>(21, 4000.0 / 21)), 0.001);
  for (const double count : any) EXPECT_LT(test::deviations(count, 4000, 6.0 / 21), 4.5);
}

TEST(Needles, digits_cities_and_filler_are_drawn_uniformly) {
  const auto data = make_task(needles_data());
  std::map<std::int32_t, double> counts;
  for (Index step = 0; step < 30; ++step)
    for (const std::int32_t token : data->train_batch(step, 0).tokens) ++counts[token];
  const auto p_of = [&counts](std::int32_t first, std::int32_t end) {
    std::vector<double> found;
    double total = 0;
    for (std::int32_t token = first; token < end; ++token) {
      found.push_back(counts[token]);
      total += counts[token];
    }
    return test::chi_square_p(
        found, std::vector<double>(found.size(), total / static_cast<double>(found.size())));
  };
  EXPECT_GT(p_of(31, 39), 0.001) << "filler";
  EXPECT_EQ(counts.rbegin()->first, 38);
  // Questions repeat facts, so digits and cities are not independent draws.
  for (std::int32_t token = 1; token < 31; ++token) EXPECT_GT(counts[token], 100) << token;
}

TEST(Needles, impossible_sizes_are_errors_with_a_remedy) {
  const auto says = [](const char* text) { return HasSubstr(text); };
  DataConfig wrong = needles_data();
  wrong.needles.queries = {1};
  EXPECT_THAT(test::errors_of(wrong),
              says("data.needles.queries: facts lists 2 numbers, but queries "
                   "lists 1; write equally many, one pair of facts and queries per setting"));
  wrong.needles.queries = {1, 7};
  EXPECT_THAT(test::errors_of(wrong),
              says("data.needles.queries: 7 queries of 6 facts; each fact is queried at most once: "
                   "lower data.needles.queries or raise data.needles.facts"));
  wrong.needles.queries = {1, 2};
  wrong.needles.cities = 5;
  EXPECT_THAT(test::errors_of(wrong), says("data.needles.facts: 6 facts need as many different "
                                           "cities, but there are 5; raise data.needles.cities"));
  wrong.needles.cities = 20;
  wrong.seq_len = 32;
  EXPECT_THAT(test::errors_of(wrong), says("data.needles.digits: 6 facts and 2 queries take 34 "
                                           "tokens, but a sequence has 33; raise data.seq_len"));
}

}  // namespace
}  // namespace difftape::run
