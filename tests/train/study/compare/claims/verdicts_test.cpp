// Verdicts on synthetic values: decisions by p values, and their error rates.
#include "train/study/compare/claims/verdicts.h"

#include "tests/support/test.h"
#include "train/stats/decision.h"
#include "train/study/compare/claims/output.h"

namespace difftape::study {
namespace {

Claim claim(const std::string& id, Rank rank = Rank::primary, Expect expect = Expect::lower,
            double margin = kNone) {
  Claim made;
  made.id = made.family = id;
  made.statement = "a claim";
  made.endpoint = rank;
  made.metric = &quantity("val_loss");
  made.expect = expect;
  made.margin = margin;
  return made;
}

/// Returns pairs whose differences are `mean` plus an alternating deviation.
Measured pairs(double mean, double deviation = 0.01, int count = 8) {
  Measured made;
  made.arm = "a";
  made.reference = "b";
  made.stated_before = true;
  made.where = "lr 0.01";
  for (int i = 0; i < count; ++i) {
    made.seeds.push_back(static_cast<std::uint64_t>(i) + 1);
    made.a.push_back(2 + mean + (i % 2 == 0 ? deviation : -deviation));
    made.b.push_back(2);
  }
  made.paired = stats::paired_difference(made.a, made.b);
  return made;
}

Finding finding(const Claim& made, Measured measured) {
  ClaimsFile file;
  file.claims = {made};
  return decide(file, {std::move(measured)}).front().verdict.finding;
}

TEST(Verdicts, count_every_primary_claim_of_the_file_even_of_other_sweeps) {
  ClaimsFile file;
  file.claims = {claim("here"), claim("elsewhere"), claim("elsewhere too")};
  Measured none;
  none.reason = "no run matches 'where'";
  const auto results = decide(file, {pairs(-0.1), none, none});
  EXPECT_EQ(results[1].verdict.finding, Finding::not_tested);
  EXPECT_DOUBLE_EQ(results[0].level, 0.05 / 3);
}

TEST(Verdicts, on_a_difference_are_supported_contradicted_or_inconclusive) {
  using enum Finding;
  for (const auto& [expect, lower, higher, none] :
       {std::tuple(Expect::lower, supported, contradicted, equivalent),
        std::tuple(Expect::higher, contradicted, supported, equivalent),
        std::tuple(Expect::equivalent, contradicted, contradicted, supported),
        std::tuple(Expect::not_higher, supported, contradicted, supported)}) {
    const Claim made = claim("c", Rank::primary, expect, 0.02);
    EXPECT_EQ(finding(made, pairs(-0.1)), lower) << to_string(expect);
    EXPECT_EQ(finding(made, pairs(0.1)), higher) << to_string(expect);
    EXPECT_EQ(finding(made, pairs(0.0)), none) << to_string(expect);
    EXPECT_EQ(finding(made, pairs(0.0, 0.1)), inconclusive) << to_string(expect);
  }
  EXPECT_EQ(finding(claim("c"), pairs(0)), inconclusive)
      << "without a margin nothing is equivalent";
  const Claim above = claim("c", Rank::primary, Expect::not_higher, 0.02);
  EXPECT_EQ(finding(above, pairs(0.01, 0.001)), supported) << "above 0, and not above the margin";
}

TEST(Verdicts, on_equal_differences_use_the_sign_test) {
  using enum Finding;
  for (const Expect expect : {Expect::lower, Expect::equivalent, Expect::not_higher}) {
    const Claim made = claim("c", Rank::primary, expect, 0.02);
    EXPECT_EQ(finding(made, pairs(-0.01, 0, 3)), inconclusive) << to_string(expect);
    EXPECT_NE(finding(made, pairs(-0.01, 0, 6)), inconclusive) << to_string(expect);
  }
  ClaimsFile file;
  file.claims = {claim("c")};
  EXPECT_EQ(verdict_text(decide(file, {pairs(-0.01, 0, 3)}).front()), "inconclusive");
}

TEST(Verdicts, on_a_difference_within_the_margin_mention_it) {
  ClaimsFile file;
  file.claims = {claim("c", Rank::primary, Expect::lower, 0.02)};
  EXPECT_EQ(verdict_text(decide(file, {pairs(-0.01, 0.001)}).front()),
            "supported; the difference is within the margin");
  EXPECT_EQ(verdict_text(decide(file, {pairs(-0.03, 0.001)}).front()), "supported");
}

TEST(Verdicts, show_the_interval_that_decides) {
  ClaimsFile file;
  for (const char* id : {"a", "b", "c", "d", "e"}) file.claims.push_back(claim(id));
  const auto results = decide(file, std::vector<Measured>(5, pairs(-0.1)));
  // scipy.stats.t.interval(0.99, 7, -0.1, 0.01 / sqrt(7)): +-0.01323.
  EXPECT_THAT(numbers_text(results[0]),
              AllOf(HasSubstr(" -0.1000 (-0.1089 to -0.0911), 8 seeds at lr 0.01"),
                    EndsWith("; 99 % interval -0.1132 to -0.0868")));
}

TEST(Verdicts, need_three_seeds_and_the_control) {
  EXPECT_EQ(finding(claim("c"), pairs(-0.1, 0.01, 2)), Finding::not_tested);
  EXPECT_EQ(finding(claim("c"), pairs(-0.1, 0.01, 1)), Finding::not_tested);
  Measured failed = pairs(-0.1);
  failed.failed_control = "gradient spikes: softmax has 0.3 on average; need 5 to 30";
  ClaimsFile file;
  file.claims = {claim("c")};
  const auto results = decide(file, {failed});
  EXPECT_EQ(results[0].verdict.finding, Finding::not_testable);
  EXPECT_EQ(verdict_text(results[0]),
            "not testable here: gradient spikes: softmax has 0.3 on average; need 5 to 30");
}

TEST(Verdicts, wait_for_the_planned_seeds) {
  ClaimsFile file;
  file.claims = {claim("c")};
  Measured few = pairs(-0.1, 0.001, 5);
  few.missing = 3;
  const ClaimResult result = decide(file, {few}).front();
  EXPECT_EQ(result.verdict.finding, Finding::inconclusive);
  EXPECT_EQ(verdict_text(result), "inconclusive: 5 of 8 seeds have ended");
  EXPECT_TRUE(std::isnan(result.interval.mean));
  few.failed_control = "too few spikes so far";
  EXPECT_EQ(verdict_text(decide(file, {few}).front()), "inconclusive: 5 of 8 seeds have ended");
}

TEST(Verdicts, change_where_the_end_of_the_interval_crosses_zero_or_the_margin) {
  using enum Finding;
  // Eight differences with a standard error of 0.01 / sqrt(7); scipy.stats.t.ppf with 7 degrees of
  // freedom: 0.975 -> 2.36462, 0.95 -> 1.89458.
  const double error = 0.01 / std::sqrt(7.0), two = 2.364624 * error, one = 1.894579 * error;
  const double near = 1e-6, margin = 0.02;
  const auto at = [&](Expect expect, double mean) {
    return finding(claim("c", Rank::primary, expect, margin), pairs(mean));
  };
  EXPECT_EQ(at(Expect::lower, -two - near), supported);
  EXPECT_EQ(at(Expect::lower, -two + near), equivalent);
  EXPECT_EQ(at(Expect::higher, -two - near), contradicted);
  EXPECT_EQ(at(Expect::equivalent, margin - one - near), supported);
  EXPECT_EQ(at(Expect::equivalent, margin - one + near), inconclusive);
  EXPECT_EQ(at(Expect::equivalent, margin + two - near), inconclusive) << "beyond has two sides";
  EXPECT_EQ(at(Expect::equivalent, -margin - two - near), contradicted);
  EXPECT_EQ(at(Expect::not_higher, margin - one - near), supported);
  EXPECT_EQ(at(Expect::not_higher, margin - one + near), inconclusive);
  EXPECT_EQ(at(Expect::not_higher, margin + one - near), inconclusive);
  EXPECT_EQ(at(Expect::not_higher, margin + one + near), contradicted);
}

TEST(Verdicts, of_all_endpoints_have_one_level) {
  ClaimsFile file;
  file.claims = {claim("first"), claim("second"), claim("third", Rank::secondary),
                 claim("fourth", Rank::secondary), claim("fifth", Rank::exploratory)};
  file.claims[2].family = file.claims[3].family = "first";
  const auto results =
      decide(file, {pairs(-0.1), pairs(0, 0.1), pairs(-0.1), pairs(0, 0.1), pairs(-0.1)});
  EXPECT_EQ(results[0].verdict.finding, Finding::supported);
  EXPECT_EQ(results[1].verdict.finding, Finding::inconclusive);
  EXPECT_EQ(results[2].verdict.finding, Finding::supported);
  EXPECT_EQ(results[2].endpoint, Rank::secondary);
  EXPECT_EQ(results[3].verdict.finding, Finding::inconclusive);
  EXPECT_EQ(verdict_text(results[4]), "exploratory: supported");
  for (const ClaimResult& each : results) EXPECT_EQ(each.level, 0.025);
}

TEST(Verdicts, on_secondary_claims_are_exploratory_if_the_gate_is_closed) {
  ClaimsFile file;
  file.claims = {claim("first"), claim("second", Rank::secondary), claim("third", Rank::secondary)};
  file.claims[1].family = file.claims[2].family = "first";
  const auto closed = decide(file, {pairs(0, 0.1), pairs(-0.1), pairs(-0.1)});
  EXPECT_EQ(verdict_text(closed[1]), "exploratory: supported");
  const auto half = decide(file, {pairs(-0.1), pairs(0, 0.1), pairs(-0.1)});
  EXPECT_EQ(half[1].verdict.finding, Finding::inconclusive);
  EXPECT_EQ(verdict_text(half[2]), "exploratory: supported") << "the one before it was not decided";
  Measured none;
  none.reason = "no run matches 'where'";
  EXPECT_EQ(verdict_text(decide(file, {pairs(-0.1), none, pairs(-0.1)})[2]),
            "exploratory: supported")
      << "the one before it was not tested";
}

TEST(Verdicts, on_claims_that_were_not_preregistered_are_exploratory) {
  ClaimsFile file;
  file.claims = {claim("c")};
  Measured late = pairs(-0.1);
  late.stated_before = false;
  const auto results = decide(file, {late});
  EXPECT_EQ(verdict_text(results[0]), "exploratory: supported");
  EXPECT_THAT(claims_notes(file, results)[1], HasSubstr("1 claim was not preregistered"));
}

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

TEST(Power, of_claims_uses_the_level_of_the_claims) {
  const auto rows = power_table(file_with("seeds: [1..8]\n"), 3).rows;
  ASSERT_EQ(rows.size(), 3u) << "exploratory claims decide nothing";
  const double error = 0.011 / std::sqrt(8.0);
  EXPECT_EQ(rows[0][2], "8") << "the seeds of the file, whatever the sweep trains";
  EXPECT_EQ(rows[0][4], fmt::format("{:.3g}", stats::student_t_quantile(0.975, 7) * error));
  const double found = std::stod(rows[0][5]);
  EXPECT_NEAR(stats::two_sided_power(found, error, 7, 0.025), 0.8, 0.01);
  EXPECT_EQ(rows[0][7], fmt::format("{:.2f}", stats::equivalence_power(0.01, error, 7, 0.025)));
  EXPECT_EQ(rows[0][8], "nats per token");
  EXPECT_EQ(rows[1][8], "factor");
  EXPECT_EQ(rows[1][3], "x1.14");
  EXPECT_EQ(rows[1][5], "-") << "it expects no difference";
  EXPECT_EQ(rows[1][7],
            fmt::format("{:.2f}", stats::equivalence_power(
                                      std::log(1.5), std::log(1.14) / std::sqrt(8.0), 7, 0.025)));
  EXPECT_THAT(rows[2], ElementsAre("unplanned", "secondary", "6", "-", HasSubstr(" SD"),
                                   HasSubstr(" SD"), "-", "-", "fraction"));
}

TEST(Power, of_a_claim_of_no_higher_value_is_one_sided) {
  const ClaimsFile file = claims_from_text(
      "margins: {val_loss: {margin: 0.01, reason: r}}\nclaims: {c: {statement: s, arm: a, "
      "reference: b, endpoint: primary, metric: val_loss, expect: not_higher, planned_sd: 0.011}}",
      "c.yaml");
  const double error = 0.011 / std::sqrt(8.0);
  EXPECT_NEAR(power_of(file.claims[0], file, 8).of_none,
              stats::one_sided_power(0.01, error, 7, 0.05), 1e-12);
}

TEST(Power, of_a_claim_without_seeds_uses_the_trained_seeds) {
  const auto rows = power_table(file_with(""), 5).rows;
  EXPECT_EQ(rows[0][2], "5");
  EXPECT_EQ(rows[2][2], "6");
  EXPECT_EQ(power_table(file_with(""), 1).rows[0][4], "-") << "one seed has no interval";
}

TEST(Power, of_a_mean_over_sizes_combines_their_seeds) {
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
  EXPECT_EQ(rows[1][8], "nats per token per decade");
}

TEST(Power, explains_that_all_claims_are_exploratory_without_a_primary_one) {
  const ClaimsFile file = claims_from_text(
      "claims: {a: {statement: s, arm: a, reference: b, metric: val_loss}}", "c.yaml");
  EXPECT_EQ(power_text(file, 8, 80), "c.yaml has no primary claim: all are exploratory\n");
}

}  // namespace
}  // namespace difftape::study
