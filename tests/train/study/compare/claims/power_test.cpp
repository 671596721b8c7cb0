#include "train/study/compare/claims/power.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/stats/decision.h"

namespace difftape::study {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ClaimsFile file_with(const std::string& top) {
  return claims_from_text(top + R"(claims:
  loss:
    statement: s
    endpoint: primary
    arm: a
    reference: b
    metric: val_loss
    margin: 0.01
    plan: {spread: 0.011, effect: -0.025}
  logit:
    statement: s
    endpoint: primary
    arm: a
    reference: b
    metric: attention_logit
    plan: {spread: 1.14, effect: 0.74}
  unplanned:
    statement: s
    family: logit
    endpoint: secondary
    arm: a
    reference: b
    metric: sink_rate
  open: {statement: s, arm: a, reference: b, metric: val_loss}
)",
                          "c.yaml");
}

TEST(Power, of_planned_claims_is_that_of_the_worst_step_of_holm) {
  const ClaimsFile file = file_with("seeds: [1, 2, 3, 4, 5, 6, 7, 8]\n");
  EXPECT_EQ(planned_seeds(file), 8);
  const auto rows = power_table(file, 8).rows;
  ASSERT_EQ(rows.size(), 3u) << "exploratory claims have no plan";
  EXPECT_EQ(rows[0][5], fmt::format("{:.2f}", stats::paired_power(0.025, 0.011, 8, 0.025)));
  EXPECT_EQ(rows[0][6],
            fmt::to_string(stats::fewest_pairs(
                [](Index n) { return stats::paired_power(0.025, 0.011, n, 0.025); }, 0.8)));
  EXPECT_EQ(rows[0][8], fmt::format("{:.2f}", stats::equivalence_power(0.01, 0.011, 8, 0.025)));
  const double found = std::stod(rows[0][3]);
  EXPECT_NEAR(stats::paired_power(found, 0.011, 8, 0.025), 0.8, 0.01);
  EXPECT_EQ(rows[1][2], "x1.14");
  EXPECT_EQ(rows[1][4], "x0.74");
  EXPECT_THAT(rows[2], ElementsAre("unplanned", "secondary", "-", HasSubstr(" SD"), "-", "-", "-",
                                   "-", "-"));
}

TEST(Power, of_claims_that_expect_no_difference_is_that_of_finding_none) {
  const ClaimsFile file = claims_from_text(R"(claims:
  same: {statement: s, endpoint: primary, arm: a, reference: b, metric: val_loss, expect: equivalent,
         margin: 0.02, plan: {spread: 0.011, effect: 0.005}}
  worse: {statement: s, endpoint: primary, arm: a, reference: b, metric: val_loss, expect: not_higher,
          margin: 0.02, plan: {spread: 0.011, effect: -0.01}}
)",
                                           "c.yaml");
  const auto rows = power_table(file, 8).rows;
  EXPECT_EQ(rows[0][3], "-");
  EXPECT_EQ(rows[0][5],
            fmt::format("{:.2f}", stats::equivalence_power(0.02, 0.011, 8, 0.025, 0.005)));
  EXPECT_EQ(rows[1][5], fmt::format("{:.2f}", stats::one_sided_power(0.03, 0.011, 8, 0.025)));
  EXPECT_EQ(rows[1][8], fmt::format("{:.2f}", stats::one_sided_power(0.02, 0.011, 8, 0.025)));
}

TEST(Power, of_fewer_seeds_than_are_planned_is_what_they_decide_now) {
  const auto rows = power_table(file_with("seeds: [1, 2, 3, 4, 5, 6, 7, 8]\n"), 4).rows;
  EXPECT_EQ(rows[0][5], "0.00") << "nothing before all have ended";
  EXPECT_EQ(rows[0][8], "0.00");
  EXPECT_EQ(rows[0][3], "-");
  const auto look = power_table(file_with("looks: true\n"), 4).rows;
  // Two primary claims: half of the level of the first look for 0.05, 0.0005, or a little less.
  EXPECT_LE(std::stod(look[0][5]), stats::paired_power(0.025, 0.011, 4, 0.00025) + 0.005);
  EXPECT_GT(std::stod(look[0][5]), 0);
  EXPECT_EQ(look[0][8], "0.00") << "equivalence at the last look alone";
}

TEST(Power, of_looks_is_that_of_the_last_one) {
  EXPECT_EQ(planned_seeds(file_with("looks: true\n")), 12);
  EXPECT_EQ(planned_seeds(file_with("")), 0);
}

TEST(Power, of_claims_without_a_primary_one_says_that_they_give_hints) {
  const ClaimsFile file = claims_from_text(
      "claims: {a: {statement: s, arm: a, reference: b, metric: val_loss}}", "c.yaml");
  EXPECT_EQ(power_text(file, 8, 80), "c.yaml has no primary claim: all are exploratory\n");
}

}  // namespace
}  // namespace difftape::study
