// Simulates studies with the claims of the size ladder. Checks how often a primary verdict is
// wrong, for any true differences, and that verdicts reach the computed power.

#include "core/random.h"
#include "tests/support/test.h"
#include "train/stats/decision.h"
#include "train/study/compare/claims/verdicts.h"

namespace difftape::study {
namespace {

constexpr int kStudies = 4000;  // of each truth
constexpr int kPairs = 12;

/// Standard error of the mean as a fraction of the margin; both hypotheses can be decided.
constexpr double kErrorPerMargin = 0.2;

/// True difference, in margins, of the primary claim with this index, or of a secondary claim. A
/// verdict of equivalence is right up to 1 and wrong above.
using Truth = std::function<double(std::size_t primary)>;
constexpr double kEdge = 1 + 1e-9, kLarge = 3;

/// Returns whether a finding is wrong for a true difference, in margins.
bool is_wrong(const ClaimResult& result, double truth) {
  const bool supported = result.verdict.finding == Finding::supported;
  if (!result.verdict.is_decided() || result.endpoint == Rank::exploratory) return false;
  switch (result.claim->expect) {
    case Expect::equivalent:
      return supported ? std::abs(truth) > 1 : std::abs(truth) <= 1;
    case Expect::not_higher:
      return supported ? truth > 1 : truth <= 1;
    case Expect::lower:
    case Expect::higher:
      break;
  }
  if (result.within && std::abs(truth) > 1) return true;
  if (result.verdict.finding == Finding::equivalent) return false;
  const bool says_lower = supported == (result.claim->expect == Expect::lower);
  return says_lower ? truth >= 0 : truth <= 0;
}

struct Studies : testing::Test {
  /// Fraction of studies with a wrong verdict on a primary claim and on a claim of each family, and
  /// how often each claim was decided.
  struct Counted {
    double wrong_primary = 0;
    std::map<std::string, double> wrong_in_family, decided;
  };

  /// Differences of seeds are normal, with correlation `shared` between the claims.
  Counted simulate(const Truth& truth, double shared = 0) const {
    Counted counted;
    for (int study = 0; study < kStudies; ++study) {
      const RandomStream random(static_cast<std::uint64_t>(study), "simulated");
      std::uint64_t index = 0;
      std::vector<double> of_all(kPairs);
      for (double& each : of_all) each = random.normal(index++);
      std::vector<Measured> measured;
      std::vector<double> truths;
      std::size_t primaries = 0;
      for (const Claim& claim : file.claims) {
        const bool primary = claim.endpoint == Rank::primary;
        truths.push_back(truth(primary ? primaries++ : primaries));
        const double margin = margin_of(claim), spread = spread_of(claim);
        Measured& made = measured.emplace_back();
        made.stated_before = true;
        for (std::size_t i = 0; i < kPairs; ++i) {
          const double noise =
              std::sqrt(shared) * of_all[i] + std::sqrt(1 - shared) * random.normal(index++);
          made.seeds.push_back(i);
          made.a.push_back(truths.back() * margin + spread * noise);
          made.b.push_back(0);
        }
        made.paired = stats::paired_difference(made.a, made.b);
      }
      count(decide(file, std::move(measured)), truths, counted);
    }
    return counted;
  }

  static double margin_of(const Claim& claim) {
    return std::isnan(claim.margin) ? 1 : claim.margin_on_axis();
  }
  static double spread_of(const Claim& claim) {
    return kErrorPerMargin * std::sqrt(static_cast<double>(kPairs)) * margin_of(claim);
  }

  ClaimsFile file =
      load_claims(DIFFTAPE_TEST_SOURCE_DIR "/configs/studies/size_ladder/claims.yaml");
  /// 0.05 plus two standard errors for kStudies studies: at a true rate of 0.05, one case in forty
  /// would exceed it.
  const double at_most = 0.05 + 2 * std::sqrt(0.05 * 0.95 / kStudies);

 private:
  static void count(const std::vector<ClaimResult>& results, const std::vector<double>& truths,
                    Counted& counted) {
    constexpr double kOne = 1.0 / kStudies;
    bool primary = false;
    std::set<std::string> families;
    for (std::size_t i = 0; i < results.size(); ++i) {
      counted.decided[results[i].claim->id] += results[i].verdict.is_decided() ? kOne : 0;
      if (!is_wrong(results[i], truths[i])) continue;
      primary = primary || results[i].endpoint == Rank::primary;
      families.insert(results[i].claim->family);
    }
    counted.wrong_primary += primary ? kOne : 0;
    for (const std::string& family : families) counted.wrong_in_family[family] += kOne;
  }
};

/// Differences by the index of the primary claim; the last one is for secondary claims.
Truth listed(const std::vector<double>& margins) {
  return [margins](std::size_t i) { return margins[std::min(i, margins.size() - 1)]; };
}

TEST_F(Studies, have_five_primary_claims_with_margins) {
  int primaries = 0;
  for (const Claim& claim : file.claims) {
    if (claim.endpoint != Rank::primary) continue;
    ++primaries;
    EXPECT_FALSE(std::isnan(claim.margin)) << claim.id;
  }
  EXPECT_EQ(primaries, 5);
}

TEST_F(Studies, with_one_truth_for_all_claims_err_in_at_most_one_of_twenty) {
  for (const double everywhere : {0.0, kEdge, -kEdge, 0.5, -kLarge}) {
    const Counted counted = simulate(listed({everywhere}));
    EXPECT_LE(counted.wrong_primary, at_most) << everywhere;
    for (const auto& [family, wrong] : counted.wrong_in_family)
      EXPECT_LE(wrong, at_most) << everywhere << ", " << family << " with its secondary claims";
  }
}

TEST_F(Studies, with_mixed_truths_err_in_at_most_one_of_twenty) {
  // Some claims differ by the margin, others not at all. The first have a difference to find and an
  // equivalence to find falsely, the others the reverse.
  for (const std::vector<double>& mixed :
       {std::vector{kEdge, 0.0, kEdge, 0.0, kEdge}, std::vector{0.0, kEdge, 0.0, -kEdge, 0.0},
        std::vector{kEdge, kEdge, 0.0, 0.0, kEdge}, std::vector{-kLarge, kEdge, 0.0, 0.0, kLarge},
        std::vector{-kLarge, 0.5, 0.0, kEdge, kEdge}, std::vector{0.5, -0.5, 0.0, kEdge, 0.0}}) {
    for (const double shared : {0.0, 0.5}) {
      const Counted counted = simulate(listed(mixed), shared);
      EXPECT_LE(counted.wrong_primary, at_most) << testing::PrintToString(mixed) << shared;
    }
  }
}

TEST_F(Studies, with_an_effect_decide_at_the_expected_power) {
  constexpr double kEffect = 0.9;  // in margins
  const Counted counted = simulate(listed({kEffect}));
  for (const Claim& claim : file.claims) {
    if (claim.endpoint != Rank::primary || claim.expect != Expect::lower) continue;
    EXPECT_NEAR(counted.decided.at(claim.id),
                stats::two_sided_power(kEffect, kErrorPerMargin, kPairs - 1, level_of(file)), 0.02)
        << claim.id;
  }
}

}  // namespace
}  // namespace difftape::study
