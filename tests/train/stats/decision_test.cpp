#include "train/stats/decision.h"

#include <rapidcheck/gtest.h>

#include "core/random.h"
#include "tests/support/test.h"
#include "train/stats/interval.h"

namespace difftape::stats {
namespace {

PairedDifference paired(const std::vector<double>& differences) {
  return paired_difference(differences, std::vector<double>(differences.size()));
}

TEST(Equivalence, is_found_if_the_90_percent_interval_lies_within_the_margin) {
  const PairedDifference d = paired({0.2, -0.1, 0.4, 0.1, -0.3, 0.2});
  const double reach = std::abs(d.difference.mean) + student_t_quantile(0.95, 5) * d.error;
  EXPECT_NEAR(equivalence_p(d, reach), 0.05, 1e-12);
  EXPECT_LT(equivalence_p(d, 1.01 * reach), 0.05);
  EXPECT_GT(equivalence_p(d, 0.99 * reach), 0.05);
  EXPECT_GT(equivalence_p(d, d.difference.mean / 2), 0.5) << "the mean itself lies outside";
}

TEST(Equivalence, needs_two_pairs_and_a_margin) {
  EXPECT_TRUE(std::isnan(equivalence_p(paired({0.1}), 1)));
  EXPECT_TRUE(std::isnan(equivalence_p(paired({0.1, 0.2}), 0)));
  EXPECT_EQ(equivalence_p(paired({0, 0, 0}), 0.01), 0.25) << "no spread is known";
  EXPECT_EQ(equivalence_p(paired({1, 1, 1}), 0.01), 1);
}

TEST(UpperP, measures_the_distance_from_its_second_argument) {
  const PairedDifference d = paired({1.2, 0.9, 1.4, 1.1, 0.7, 1.2});
  const double limit = d.difference.mean - student_t_quantile(0.95, 5) * d.error;
  EXPECT_NEAR(upper_p(d, limit), 0.05, 1e-12);
  EXPECT_NEAR(upper_p(d, d.difference.mean), 0.5, 1e-12);
  EXPECT_NEAR(upper_p(d, 2 * d.difference.mean - limit), 0.95, 1e-12);
  EXPECT_EQ(upper_p(paired({1, 1, 1}), 0.5), 0.25) << "no spread is known";
  EXPECT_EQ(upper_p(paired({1, 1, 1}), 1), 1);
  EXPECT_TRUE(std::isnan(upper_p(paired({1}), 0)));
}

TEST(SignFlips, count_the_sums_at_least_as_far_from_zero) {
  EXPECT_EQ(sign_flip_p(std::vector{1.0, 2.0, 3.0}), 0.25) << "the minimum for 3 pairs";
  EXPECT_EQ(sign_flip_p(std::vector{1.0, 1.0, 1.0, 1.0, 1.0}), 0.0625);
  EXPECT_EQ(sign_flip_p(std::vector{-1.0, 2.0, 3.0}), 0.5) << "4, 6 and their negatives";
  EXPECT_EQ(sign_flip_p(std::vector{0.1, -0.1}), 1);
  EXPECT_EQ(sign_flip_p(std::vector{0.3 - 0.1, 0.2}), 0.5) << "equal but for rounding";
  EXPECT_TRUE(std::isnan(sign_flip_p({})));
  EXPECT_TRUE(std::isnan(sign_flip_p(std::vector{1.0, kNaN})));
  EXPECT_TRUE(std::isnan(sign_flip_p(std::vector<double>(kMostSignFlips + 1, 1.0))));
}

TEST(BenjaminiHochberg, reproduces_the_example_of_the_article) {
  // The fifteen tests of section 3.2: four are rejected at q = 0.05.
  const std::vector<double> p{0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
                              0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000};
  const std::vector<double> adjusted = benjamini_hochberg(p);
  EXPECT_EQ(std::ranges::count_if(adjusted, [](double each) { return each <= 0.05; }), 4);
  EXPECT_DOUBLE_EQ(adjusted[3], 0.0095 * 15 / 4);
  EXPECT_TRUE(std::isnan(benjamini_hochberg(std::vector{0.1, kNaN})[1]));
  EXPECT_EQ(benjamini_hochberg(std::vector{0.1, kNaN})[0], 0.1);
}

RC_GTEST_PROP(BenjaminiHochberg, never_lowers_and_is_never_above_holm,
              (std::vector<unsigned> draws)) {
  std::vector<double> p;
  for (const unsigned draw : draws) p.push_back((draw % 1001) / 1000.0);
  const std::vector<double> adjusted = benjamini_hochberg(p), strict = holm(p);
  for (std::size_t i = 0; i < p.size(); ++i) {
    RC_ASSERT(adjusted[i] >= p[i] && adjusted[i] <= strict[i] + 1e-15);
    for (std::size_t j = 0; j < p.size(); ++j) RC_ASSERT(p[i] > p[j] || adjusted[i] <= adjusted[j]);
  }
}

TEST(Power, is_how_often_the_test_finds_the_effect) {
  const RandomStream noise(5, "power");
  constexpr int kTrials = 20000;
  int found = 0, above = 0, equal = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> effect, none;
    for (std::uint64_t i = 0; i < 8; ++i) {
      const double value = noise.normal(static_cast<std::uint64_t>(trial) * 8 + i);
      effect.push_back(0.8 + value);
      none.push_back(value);
    }
    found += paired(effect).p < 0.05 ? 1 : 0;
    above += upper_p(paired(effect), 0) < 0.05 ? 1 : 0;
    equal += equivalence_p(paired(none), 0.9) < 0.05 ? 1 : 0;
  }
  const double error = 1 / std::sqrt(8.0);
  EXPECT_NEAR(two_sided_power(0.8, error, 7, 0.05), static_cast<double>(found) / kTrials, 0.011);
  EXPECT_NEAR(equivalence_power(0.9, error, 7, 0.05), static_cast<double>(equal) / kTrials, 0.011);
  EXPECT_NEAR(one_sided_power(0.8, error, 7, 0.05), static_cast<double>(above) / kTrials, 0.011);
  EXPECT_NEAR(two_sided_power(0, error, 7, 0.05), 0.05, 1e-9);
  EXPECT_NEAR(one_sided_power(0, error, 7, 0.05), 0.05, 1e-9);
}

TEST(JointHolm, multiplies_by_the_claims_until_both_nulls_of_one_are_rejected) {
  // The first claim: a difference that is within its margin.
  const std::vector<TwoHypotheses> claims{{0.001, 0.004}, {0.012, 0.5}, {0.6, 0.013}};
  const auto corrected = joint_holm(claims);
  EXPECT_DOUBLE_EQ(corrected[0].own, 3 * 0.001);
  EXPECT_DOUBLE_EQ(corrected[0].other, 3 * 0.004) << "one null rejected: no credit";
  EXPECT_DOUBLE_EQ(corrected[1].own, 2.5 * 0.012) << "the other direction still counts half";
  EXPECT_DOUBLE_EQ(corrected[2].other, 2.5 * 0.013);
  EXPECT_EQ(corrected[1].own_factor, 2.5);
  EXPECT_EQ(corrected[0].other_factor, 3);
  EXPECT_EQ(corrected[1].other, 1);
}

TEST(JointHolm, credits_a_claim_without_a_second_hypothesis_for_its_direction) {
  const std::vector<TwoHypotheses> claims{{0.001, {}}, {0.01, {}}, {0.02, {}}};
  const auto corrected = joint_holm(claims);
  EXPECT_DOUBLE_EQ(corrected[0].own, 3 * 0.001);
  EXPECT_DOUBLE_EQ(corrected[1].own, 2.5 * 0.01);
  EXPECT_DOUBLE_EQ(corrected[2].own, 2 * 0.02);
  EXPECT_TRUE(std::isnan(corrected[0].other));
}

TEST(JointHolm, never_credits_complementary_hypotheses) {
  const std::vector<TwoHypotheses> claims{
      {0.001, 0.9, true}, {0.9, 0.001, true}, {0.03, 0.9, true}};
  const auto corrected = joint_holm(claims);
  EXPECT_DOUBLE_EQ(corrected[0].own, 3 * 0.001);
  EXPECT_DOUBLE_EQ(corrected[1].other, 3 * 0.001);
  EXPECT_DOUBLE_EQ(corrected[2].own, 3 * 0.03);
}

TEST(JointHolm, counts_hypotheses_that_cannot_be_tested_yet) {
  const std::vector<TwoHypotheses> claims{{0.01, kNaN}, {kNaN, {}}, {0.01, {}}};
  const auto corrected = joint_holm(claims);
  EXPECT_DOUBLE_EQ(corrected[0].own, 3 * 0.01);
  EXPECT_TRUE(std::isnan(corrected[1].own) && std::isnan(corrected[1].own_factor));
  EXPECT_DOUBLE_EQ(corrected[2].own, 3 * 0.01) << "the margin of the first is still tested";
  EXPECT_TRUE(joint_holm({}).empty());
}

RC_GTEST_PROP(JointHolm, keeps_the_order_and_lies_between_holm_and_bonferroni,
              (std::vector<unsigned> draws)) {
  std::vector<TwoHypotheses> claims;
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
