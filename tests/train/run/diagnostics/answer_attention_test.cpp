#include "train/run/diagnostics/attention_measures.h"

#include "tests/support/threads.h"
#include "tests/train/run/diagnostics/view.h"
#include "train/run/data/tasks/task.h"
#include "train/run/diagnostics/diagnose.h"

namespace difftape::run {
namespace {

using test::view_of;

/// Returns a view with q = 1 and large k at the keys that get all the weight.
void look_at(AttentionView& view, Index key_head, Index b, Index token) {
  const Index heads = view.k.shape()[2], seq = view.k.shape()[1];
  std::fill_n(view.k.data() + ((b * seq + token) * heads + key_head) * 8, 8, real(100));
}
AttentionView blank(const HeadMapping& mapping, Index batch, Index seq, double lambda = 0.5) {
  AttentionView view = view_of(mapping, batch, seq, lambda);
  view.q.fill(1);
  view.k.fill(0);
  return view;
}

TEST(AnswerAttention, is_1_with_no_noise_if_all_weight_is_on_the_answer) {
  AttentionView view = blank(HeadMapping::standard(2, 1), 2, 20);
  look_at(view, 0, 0, 4);
  look_at(view, 0, 1, 11);
  const std::vector<RetrievalTarget> queries{{0, 15, {3, 6}, {0, 14}}, {1, 18, {10, 12}, {0, 14}}};
  const AnswerAttention found = answer_attention(view, queries);
  EXPECT_DOUBLE_EQ(found.answer, 1);
  EXPECT_NEAR(found.noise, 0, 1e-12);
}

TEST(AnswerAttention, of_uniform_attention_is_the_fraction_of_tokens) {
  const AttentionView view = blank(HeadMapping::standard(4, 2), 1, 20);
  const std::vector<RetrievalTarget> queries{{0, 15, {3, 6}, {0, 12}}, {0, 19, {8, 10}, {0, 12}}};
  const AnswerAttention found = answer_attention(view, queries);
  EXPECT_NEAR(found.answer, (3.0 / 16 + 2.0 / 20) / 2, 1e-12);
  EXPECT_NEAR(found.noise, (9.0 / 16 + 10.0 / 20) / 2, 1e-12);
}

TEST(AnswerAttention, is_the_mean_over_heads) {
  AttentionView view = blank(HeadMapping::standard(2, 2), 1, 20);
  look_at(view, 0, 0, 4);
  look_at(view, 1, 0, 1);
  const AnswerAttention found =
      answer_attention(view, std::vector<RetrievalTarget>{{0, 15, {3, 6}, {0, 9}}});
  EXPECT_DOUBLE_EQ(found.answer, 0.5);
  EXPECT_DOUBLE_EQ(found.noise, 0.5);
}

TEST(AnswerAttention, of_two_maps_uses_their_normalized_difference) {
  AttentionView view = blank(HeadMapping::paired(2, 2), 1, 20, 0.25);
  const OutputHead& route = view.mapping.outputs[0];
  ASSERT_NE(route.key[0], route.key[1]);
  look_at(view, route.key[0], 0, 4);
  look_at(view, route.key[1], 0, 1);
  const AnswerAttention found =
      answer_attention(view, std::vector<RetrievalTarget>{{0, 15, {3, 6}, {0, 9}}});
  EXPECT_NEAR(found.answer, 1 / 1.25, 1e-6) << "|1 - 0| of |1| + |-0.25|";
  EXPECT_NEAR(found.noise, 0.25 / 1.25, 1e-6);
}

TEST(AnswerAttention, gives_tokens_that_a_query_does_not_see_no_weight) {
  AttentionView view = blank(HeadMapping::standard(1, 1), 1, 20);
  view.visible.sliding_window = 8;
  const std::vector<RetrievalTarget> queries{{0, 15, {6, 10}, {0, 12}}};  // sees 8 to 15
  const AnswerAttention found = answer_attention(view, queries);
  EXPECT_NEAR(found.answer, 2.0 / 8, 1e-12);
  EXPECT_NEAR(found.noise, 2.0 / 8, 1e-12);
  const std::vector<RetrievalTarget> early{{0, 15, {1, 4}, {0, 6}}};
  EXPECT_EQ(answer_attention(view, early).answer, 0);
  EXPECT_EQ(answer_attention(view, early).noise, 0);
}

TEST(AnswerAttention, is_nan_without_queries_or_with_nan_inputs) {
  AttentionView view = view_of(HeadMapping::doubled(2, 1), 1, 20);
  EXPECT_TRUE(std::isnan(answer_attention(view, {}).answer));
  view.q.data()[15 * 4 * 8] = std::numeric_limits<real>::quiet_NaN();
  const std::vector<RetrievalTarget> queries{{0, 15, {3, 6}, {0, 12}}};
  EXPECT_TRUE(std::isnan(answer_attention(view, queries).answer));
  EXPECT_TRUE(std::isnan(answer_attention(view, queries).noise));
}

TEST(AnswerAttention, has_the_same_bits_for_every_number_of_threads) {
  const AttentionView view = view_of(HeadMapping::doubled(4, 2), 2, 30);
  const std::vector<RetrievalTarget> queries{{0, 25, {3, 6}, {0, 12}}, {1, 29, {8, 10}, {0, 12}}};
  std::vector<double> found;
  for (const int threads : {1, 2, 5}) {
    const test::Threads use(threads);
    found.push_back(answer_attention(view, queries).answer);
  }
  EXPECT_THAT(found, testing::Each(found[0]));
}

TEST(AnswerAttention, keeps_the_queries_of_the_sequences_in_a_diagnostic_batch) {
  DataConfig config;
  config.type = DataKind::needles;
  config.seq_len = 64;
  config.batch_size = 2;
  config.needles.facts = {2};
  config.needles.queries = {1};
  const std::unique_ptr<Dataset> data = make_needles(config, 1);
  const Batch batch = diagnostic_batch(*data, 3);
  ASSERT_EQ(batch.batch, 3);
  EXPECT_EQ(batch.tokens.size(), 3u * 65);
  std::vector<RetrievalTarget> expected = data->val_batch(0).queries;
  for (RetrievalTarget query : data->val_batch(1).queries) {
    query.row += 2;
    if (query.row < 3) expected.push_back(query);
  }
  ASSERT_EQ(batch.queries.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(batch.queries[i].row, expected[i].row);
    EXPECT_EQ(batch.queries[i].position, expected[i].position);
    EXPECT_EQ(batch.queries[i].answer, expected[i].answer);
    EXPECT_EQ(batch.queries[i].noise, expected[i].noise);
  }
  EXPECT_EQ(batch.queries.back().row, 2);
}

}  // namespace
}  // namespace difftape::run
