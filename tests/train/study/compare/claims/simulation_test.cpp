// The whole of the verdicts over simulated studies: how often they are wrong where there is
// nothing, and whether they decide as often as planned where there is something.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "core/random.h"
#include "train/stats/decision.h"
#include "train/study/compare/claims/verdicts.h"

namespace difftape::study {
namespace {

constexpr int kStudies = 3000;

/// Of a claim that plans nothing: what single differences spread by, on its axis, and their mean.
constexpr double kSpread = 0.8, kEffect = -1.0;

double spread_of(const Claim& claim) {
  return std::isnan(claim.planned_spread) ? kSpread : claim.on_axis(claim.planned_spread);
}

/// What is true of a claim: the mean of its differences.
using Truth = std::function<double(const Claim&)>;

double nothing(const Claim&) { return 0; }
double planned(const Claim& claim) {
  if (claim.expect == Expect::equivalent) return 0;
  return std::isnan(claim.planned_effect) ? kEffect : claim.on_axis(claim.planned_effect);
}

/// A claims file of this project, primary and secondary claims, simulated.
class Studies : public testing::TestWithParam<const char*> {
 protected:
  /// Of `kStudies`: the share with a wrong verdict on a primary claim, with one in each family, and
  /// how often each claim was decided.
  struct Counted {
    double wrong_primary = 0;
    std::map<std::string, double> wrong_in_family, decided;
  };

  Counted simulate(const Truth& truth, int pairs) const {
    Counted counted;
    for (int study = 0; study < kStudies; ++study) {
      const RandomStream random(static_cast<std::uint64_t>(study), "simulated");
      std::uint64_t index = 0;
      std::vector<Measured> measured;
      for (const Claim& claim : file.claims) {
        Measured& made = measured.emplace_back();
        made.stated_before = true;
        for (int i = 0; i < pairs; ++i) {
          made.seeds.push_back(static_cast<std::uint64_t>(i));
          made.a.push_back(truth(claim) + spread_of(claim) * random.normal(index++));
          made.b.push_back(0);
        }
        made.paired = stats::paired_difference(made.a, made.b);
      }
      count(decide(file, std::move(measured)), truth, counted);
    }
    return counted;
  }

  ClaimsFile file = load_claims(std::string(DIFFTAPE_TEST_SOURCE_DIR) + "/" + GetParam());
  /// One in twenty, and two standard errors of counting it in kStudies studies.
  const double at_most = 0.05 + 2 * std::sqrt(0.05 * 0.95 / kStudies);

 private:
  /// Wrong is a difference where there is none, and equivalence where the difference is the margin.
  static bool is_wrong(const ClaimResult& result, double truth) {
    if (!is_decided(result.verdict) || result.endpoint == Rank::exploratory) return false;
    const Expect expect = result.claim->expect;
    const bool of_margin = expect == Expect::equivalent || expect == Expect::not_higher;
    const bool says_equal = result.verdict == Verdict::equivalent ||
                            (of_margin && result.verdict == Verdict::supported);
    return truth == 0 ? !says_equal : says_equal;
  }

  static void count(const std::vector<ClaimResult>& results, const Truth& truth, Counted& counted) {
    constexpr double kOne = 1.0 / kStudies;
    bool primary = false;
    std::set<std::string> families;
    for (const ClaimResult& each : results) {
      counted.decided[each.claim->id] += is_decided(each.verdict) ? kOne : 0;
      if (!is_wrong(each, truth(*each.claim))) continue;
      primary = primary || each.endpoint == Rank::primary;
      families.insert(each.claim->family);
    }
    counted.wrong_primary += primary ? kOne : 0;
    for (const std::string& family : families) counted.wrong_in_family[family] += kOne;
  }
};

TEST_P(Studies, without_an_effect_call_a_false_primary_in_at_most_one_of_twenty) {
  for (const bool looks : {false, true}) {
    file.looks = looks;
    const Counted counted = simulate(nothing, looks ? 12 : 8);
    EXPECT_LE(counted.wrong_primary, at_most) << looks;
    for (const auto& [family, wrong] : counted.wrong_in_family) {
      EXPECT_LE(wrong, at_most) << family << " with its secondary claims";
    }
  }
}

TEST_P(Studies, at_the_margin_call_a_false_equivalence_in_at_most_one_of_twenty) {
  const Counted counted = simulate(
      [](const Claim& claim) {
        return std::isnan(claim.margin) ? planned(claim) : claim.margin_on_axis();
      },
      8);
  EXPECT_LE(counted.wrong_primary, at_most);
}

TEST_P(Studies, with_the_effects_of_the_pilot_decide_as_often_as_planned) {
  const Counted counted = simulate(planned, 8);
  for (const Claim& claim : file.claims) {
    if (claim.endpoint != Rank::primary || std::isnan(claim.planned_effect)) continue;
    // At the first and at the last step of Holm's correction.
    const auto power = [&](double level) {
      return stats::paired_power(planned(claim), spread_of(claim), 8, level);
    };
    EXPECT_GE(counted.decided.at(claim.id), power(worst_level(file)) - 0.04) << claim.id;
    EXPECT_LE(counted.decided.at(claim.id), power(file.alpha) + 0.04) << claim.id;
  }
}

INSTANTIATE_TEST_SUITE_P(Simulated, Studies,
                         testing::Values("configs/studies/decide/claims.yaml",
                                         "configs/studies/loss/claims.yaml"),
                         [](const auto& file) {
                           return std::string(file.index == 0 ? "decide" : "loss");
                         });

}  // namespace
}  // namespace difftape::study
