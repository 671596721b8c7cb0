#include "train/study/compare/claims/verdicts.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/stats/decision.h"

namespace difftape::study {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ClaimsFile file_with(const std::string& top) {
  return claims_from_text(top + R"(margins:
  val_loss: {margin: 0.01, reason: r}
  attention_logit: {margin: 1.5, reason: r}
claims:
  loss: {statement: s, endpoint: primary, arm: a, reference: b, metric: val_loss, planned_sd: 0.011}
  logit: {statement: s, endpoint: primary, arm: a, reference: b, metric: attention_logit,
          planned_sd: 1.14, expect: equivalent}
  unplanned: {statement: s, family: logit, endpoint: secondary, arm: a, reference: b,
              metric: sink_rate, seeds: [1..6]}
  open: {statement: s, arm: a, reference: b, metric: val_loss}
)",
                          "c.yaml");
}

TEST(Power, of_claims_is_that_of_the_first_step_of_the_correction) {
  const auto rows = power_table(file_with("seeds: [1..8]\n"), 3).rows;
  ASSERT_EQ(rows.size(), 3u) << "exploratory claims decide nothing";
  const double error = 0.011 / std::sqrt(8.0);
  EXPECT_EQ(rows[0][2], "8") << "those of the file, whatever the sweep trains";
  EXPECT_EQ(rows[0][4], fmt::format("{:.3g}", stats::student_t_quantile(0.975, 7) * error));
  const double found = std::stod(rows[0][5]);
  EXPECT_NEAR(stats::two_sided_power(found, error, 7, 0.025), 0.8, 0.01);
  EXPECT_EQ(rows[0][7], fmt::format("{:.2f}", stats::equivalence_power(0.01, error, 7, 0.025)));
  EXPECT_EQ(rows[1][3], "x1.14");
  EXPECT_EQ(rows[1][5], "-") << "it expects no difference";
  EXPECT_THAT(rows[2], ElementsAre("unplanned", "secondary", "6", "-", HasSubstr(" SD"),
                                   HasSubstr(" SD"), "-", "-"));
}

TEST(Power, of_a_claim_without_seeds_is_that_of_those_that_are_trained) {
  const auto rows = power_table(file_with(""), 5).rows;
  EXPECT_EQ(rows[0][2], "5");
  EXPECT_EQ(rows[2][2], "6");
  EXPECT_EQ(power_table(file_with(""), 1).rows[0][4], "-") << "one seed has no interval";
}

TEST(Power, of_a_mean_over_sizes_adds_up_their_seeds) {
  const std::string claim =
      "{statement: s, endpoint: primary, arm: a, reference: b, metric: val_loss, planned_sd: "
      "0.012, "
      "seeds: {32: [1..4], 64: [1..6]}, ";
  const ClaimsFile file =
      claims_from_text("claims:\n  mean: " + claim + "mean_over: parameters}\n  slope: " + claim +
                           "slope_over: parameters}\n",
                       "c.yaml");
  const auto rows = power_table(file, 9).rows;
  EXPECT_EQ(rows[0][2], "4 + 6");
  const double error = 0.012 * std::sqrt(1 / 4.0 + 1 / 6.0) / 2;
  EXPECT_EQ(rows[0][4], fmt::format("{:.3g}", stats::student_t_quantile(0.975, 8) * error));
  EXPECT_EQ(rows[1][4], "-") << "the sizes are not known";
}

TEST(Power, of_claims_without_a_primary_one_says_that_they_are_exploratory) {
  const ClaimsFile file = claims_from_text(
      "claims: {a: {statement: s, arm: a, reference: b, metric: val_loss}}", "c.yaml");
  EXPECT_EQ(power_text(file, 8, 80), "c.yaml has no primary claim: all are exploratory\n");
}

}  // namespace
}  // namespace difftape::study
