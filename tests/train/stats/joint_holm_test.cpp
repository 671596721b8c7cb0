#include "train/stats/joint_holm.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "train/stats/interval.h"

namespace difftape::stats {
namespace {

TEST(JointHolm, multiplies_by_the_claims_until_both_questions_of_one_are_answered) {
  // The first claim: a difference that is within its margin.
  const std::vector<TwoQuestions> claims{{0.001, 0.004}, {0.012, 0.5}, {0.6, 0.013}};
  const auto corrected = joint_holm(claims);
  EXPECT_DOUBLE_EQ(corrected[0].own, 3 * 0.001);
  EXPECT_DOUBLE_EQ(corrected[0].other, 3 * 0.004) << "one question answered: no credit";
  EXPECT_DOUBLE_EQ(corrected[1].own, 2.5 * 0.012) << "the other direction still counts half";
  EXPECT_DOUBLE_EQ(corrected[2].other, 2.5 * 0.013);
  EXPECT_EQ(corrected[1].own_factor, 2.5);
  EXPECT_EQ(corrected[0].other_factor, 3);
  EXPECT_EQ(corrected[1].other, 1);
}

TEST(JointHolm, credits_a_claim_without_a_second_question_for_its_direction) {
  const std::vector<TwoQuestions> claims{{0.001, {}}, {0.01, {}}, {0.02, {}}};
  const auto corrected = joint_holm(claims);
  EXPECT_DOUBLE_EQ(corrected[0].own, 3 * 0.001);
  EXPECT_DOUBLE_EQ(corrected[1].own, 2.5 * 0.01);
  EXPECT_DOUBLE_EQ(corrected[2].own, 2 * 0.02);
  EXPECT_TRUE(std::isnan(corrected[0].other));
}

TEST(JointHolm, never_credits_complementary_questions) {
  const std::vector<TwoQuestions> claims{{0.001, 0.9, true}, {0.9, 0.001, true}, {0.03, 0.9, true}};
  const auto corrected = joint_holm(claims);
  EXPECT_DOUBLE_EQ(corrected[0].own, 3 * 0.001);
  EXPECT_DOUBLE_EQ(corrected[1].other, 3 * 0.001);
  EXPECT_DOUBLE_EQ(corrected[2].own, 3 * 0.03);
}

TEST(JointHolm, counts_what_cannot_be_tested_yet) {
  const std::vector<TwoQuestions> claims{{0.01, kNaN}, {kNaN, {}}, {0.01, {}}};
  const auto corrected = joint_holm(claims);
  EXPECT_DOUBLE_EQ(corrected[0].own, 3 * 0.01);
  EXPECT_TRUE(std::isnan(corrected[1].own) && std::isnan(corrected[1].own_factor));
  EXPECT_DOUBLE_EQ(corrected[2].own, 3 * 0.01) << "the margin of the first is still asked";
  EXPECT_TRUE(joint_holm({}).empty());
}

RC_GTEST_PROP(JointHolm, keeps_the_order_and_lies_between_holm_and_bonferroni,
              (std::vector<unsigned> draws)) {
  std::vector<TwoQuestions> claims;
  std::vector<double> own;
  for (const unsigned draw : draws) {
    claims.push_back({(draw % 1001) / 1000.0, {}});
    if (draw % 3 == 1) claims.back().other = (draw / 7 % 1001) / 1000.0;
    claims.back().complementary = draw % 5 == 2;
    own.push_back(claims.back().own);
  }
  const auto corrected = joint_holm(claims);
  const std::vector<double> lenient = holm(own);
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const double all = static_cast<double>(claims.size()) * own[i];
    RC_ASSERT(corrected[i].own <= std::min(1.0, all) + 1e-12);
    RC_ASSERT(corrected[i].own >= lenient[i] - 1e-12);
    for (std::size_t j = 0; j < claims.size(); ++j)
      RC_ASSERT(own[i] > own[j] || corrected[i].own <= corrected[j].own);
  }
}

}  // namespace
}  // namespace difftape::stats
