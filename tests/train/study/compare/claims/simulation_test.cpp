// The whole of the verdicts over simulated studies: how often they are wrong where there is
// nothing, and whether they decide as often as planned where there is something.
#include <gtest/gtest.h>

#include <cmath>

#include "core/random.h"
#include "train/stats/decision.h"
#include "train/study/compare/claims/verdicts.h"

namespace difftape::study {
namespace {

constexpr int kStudies = 10000;

/// A claim of the study with what a pilot measured: single differences and their mean.
struct Planned {
  const char* id;
  Expect expect;
  double margin, spread, effect;
};
/// configs/studies/decide/claims.yaml, on the axes.
const Planned kPlanned[] = {{"v2_loss", Expect::lower, 0.010, 0.011, -0.025},
                            {"v1_norm", Expect::lower, 0.015, 0.057, 0.125},
                            {"cross_group", Expect::higher, 0.010, 0.0405, 0.115},
                            {"v2_top_logit", Expect::lower, std::log(1.1), 0.13, -0.298},
                            {"v2_grad_scale", Expect::equivalent, std::log(1.2), 0.01, -0.08},
                            {"v2_spikes", Expect::lower, kNone, 0.8, -1.0}};

ClaimsFile planned_file(bool looks) {
  ClaimsFile file;
  file.looks = looks;
  for (const Planned& each : kPlanned) {
    Claim claim;
    claim.id = claim.family = each.id;
    claim.rank = Rank::primary;
    claim.quantity = &quantity("val_loss");  // whose axis is that of the numbers
    claim.expect = each.expect;
    claim.margin = each.margin;
    file.claims.push_back(claim);
  }
  return file;
}

Measured simulated(const Planned& planned, double effect, int pairs, const RandomStream& random,
                   std::uint64_t& index) {
  Measured made;
  made.stated_before = true;
  for (int i = 0; i < pairs; ++i) {
    made.seeds.push_back(static_cast<std::uint64_t>(i) + 11);
    made.a.push_back(effect + planned.spread * random.normal(index++));
    made.b.push_back(0);
  }
  made.paired = stats::paired_difference(made.a, made.b);
  return made;
}

/// Over simulated studies: the share with a wrong verdict, and how often each claim was decided.
struct Simulated {
  double wrong = 0;
  std::vector<double> decided = std::vector<double>(std::size(kPlanned), 0.0);
};

/// What is true of each claim.
using Truth = double (*)(const Planned&);

/// `wrong` is any verdict that the truth makes wrong: a difference where there is none, equivalence
/// where the difference is the margin.
Simulated simulate(int pairs, Truth truth, bool looks) {
  const ClaimsFile file = planned_file(looks);
  Simulated result;
  for (int study = 0; study < kStudies; ++study) {
    const RandomStream random(static_cast<std::uint64_t>(study), "simulated");
    std::uint64_t index = 0;
    std::vector<Measured> measured;
    for (const Planned& each : kPlanned) {
      measured.push_back(simulated(each, truth(each), pairs, random, index));
    }
    bool wrong = false;
    const auto verdicts = decide(file, std::move(measured));
    for (std::size_t i = 0; i < verdicts.size(); ++i) {
      const bool equivalence = kPlanned[i].expect == Expect::equivalent;
      const Verdict verdict = verdicts[i].verdict;
      const bool says_equal =
          verdict == Verdict::equivalent || (equivalence && verdict == Verdict::supported);
      const bool says_different = is_decided(verdict) && !says_equal;
      result.decided[i] += is_decided(verdict) ? 1.0 / kStudies : 0;
      wrong = wrong || (truth(kPlanned[i]) == 0 ? says_different : says_equal);
    }
    result.wrong += wrong ? 1.0 / kStudies : 0;
  }
  return result;
}

/// One in twenty, and two standard errors of counting it in kStudies studies.
const double kAtMost = 0.05 + 2 * std::sqrt(0.05 * 0.95 / kStudies);

TEST(SimulatedStudies, without_an_effect_call_a_false_primary_in_at_most_one_of_twenty) {
  const Truth nothing = [](const Planned&) { return 0.0; };
  EXPECT_LE(simulate(8, nothing, false).wrong, kAtMost);
  EXPECT_LE(simulate(12, nothing, true).wrong, kAtMost) << "with looks at 4, 8 and 12 seeds";
}

TEST(SimulatedStudies, at_the_margin_call_a_false_equivalence_in_at_most_one_of_twenty) {
  const Truth at_margin = [](const Planned& each) {
    return std::isnan(each.margin) ? each.effect : each.margin;
  };
  EXPECT_LE(simulate(8, at_margin, false).wrong, kAtMost);
}

TEST(SimulatedStudies, with_the_effects_of_the_pilot_decide_as_often_as_planned) {
  const Simulated result = simulate(
      8, [](const Planned& each) { return each.effect; }, false);
  for (std::size_t i = 0; i < std::size(kPlanned); ++i) {
    const Planned& each = kPlanned[i];
    if (each.expect == Expect::equivalent) {
      EXPECT_GE(result.decided[i], 0.99) << each.id;
      continue;
    }
    // At the first and at the last step of Holm's correction.
    const double worst = stats::paired_power(each.effect, each.spread, 8, 0.05 / 6),
                 best = stats::paired_power(each.effect, each.spread, 8, 0.05);
    EXPECT_GE(result.decided[i], worst - 0.04) << each.id;
    EXPECT_LE(result.decided[i], best + 0.04) << each.id;
  }
}

}  // namespace
}  // namespace difftape::study
