#include "train/study/compare/claims/verdicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "train/stats/decision.h"
#include "train/study/compare/claims/questions.h"

namespace difftape::study {

namespace {

ClaimResult with_p(const Claim& claim, Measured measured) {
  ClaimResult result{&claim, std::move(measured), claim.endpoint};
  const Measured& found = result.measured;
  const Index seeds = found.count();
  if (seeds > 0 && !found.stated_before) result.endpoint = Rank::exploratory;
  result.verdict.reason = found.reason;
  if (!found.reason.empty()) return result;
  if (seeds < kSeedsForVerdict) {
    result.verdict.reason = seeds == 1 ? std::string("one seed: no interval")
                                       : fmt::format("{} seeds; need {}", seeds, kSeedsForVerdict);
    return result;
  }
  if (found.missing == 0 && !found.failed_control.empty()) {
    result.verdict.reason = found.failed_control;
    result.verdict.finding = Finding::not_testable;
    return result;
  }
  result.verdict.finding = Finding::inconclusive;
  result.lower = found.paired.difference.mean < 0;
  result.p_signs = stats::sign_flip_p(found.gaps());
  if (found.missing > 0) {
    result.verdict.reason = fmt::format("{} of {} seeds have ended", seeds, seeds + found.missing);
    return result;
  }
  const double margin = claim.margin_on_axis();
  const auto p_of = [&](Test test) {
    return needs_margin(test) && std::isnan(margin) ? kNone : test(found.paired, margin);
  };
  const Questions questions = questions_of(claim.expect);
  result.p = p_of(questions.own);
  result.p_other = p_of(questions.other);
  return result;
}

bool expects_difference(const Claim& claim) {
  return claim.expect == Expect::lower || claim.expect == Expect::higher;
}

/// What the corrected p values say.
Finding finding_of(const ClaimResult& result, double level) {
  const bool own = result.p_corrected <= level, other = result.p_other_corrected <= level;
  switch (result.claim->expect) {
    case Expect::equivalent:
    case Expect::not_higher:
      return own ? Finding::supported : other ? Finding::contradicted : Finding::inconclusive;
    case Expect::lower:
    case Expect::higher:
      break;
  }
  if (own) {
    const bool as_expected = result.lower == (result.claim->expect == Expect::lower);
    return as_expected ? Finding::supported : Finding::contradicted;
  }
  return other ? Finding::equivalent : Finding::inconclusive;
}

/// A primary claim that is not tested here counts all the same: it will be once its seeds have
/// ended, or in another sweep of the same file.
void decide_primaries(std::vector<ClaimResult>& results, double alpha,
                      std::map<std::string, double>& factors) {
  std::vector<std::size_t> primaries;
  std::vector<stats::TwoQuestions> questions;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const ClaimResult& each = results[i];
    if (each.endpoint != Rank::primary) continue;
    primaries.push_back(i);
    const bool difference = expects_difference(*each.claim);
    const bool asks_other = !difference || !std::isnan(each.claim->margin);
    questions.push_back({.own = each.p,
                         .other = asks_other ? std::optional(each.p_other) : std::nullopt,
                         .complementary = !difference});
  }
  const std::vector<stats::TwoCorrected> corrected = stats::joint_holm(questions);
  for (std::size_t k = 0; k < primaries.size(); ++k) {
    ClaimResult& each = results[primaries[k]];
    if (each.verdict.finding != Finding::inconclusive) continue;
    each.p_corrected = corrected[k].own;
    each.p_other_corrected = corrected[k].other;
    each.verdict.finding = finding_of(each, alpha);
    if (!each.verdict.is_decided()) continue;
    const bool by_own = each.p_corrected <= alpha;
    factors[each.claim->family] = by_own ? corrected[k].own_factor : corrected[k].other_factor;
  }
}

/// In fixed order, each at the level that the family's primary claim won.
void decide_secondaries(std::vector<ClaimResult>& results, double alpha,
                        const std::map<std::string, double>& factors) {
  std::map<std::string, double> before;
  for (ClaimResult& each : results) {
    if (each.endpoint != Rank::secondary) continue;
    const auto factor = factors.find(each.claim->family);
    double& least = before[each.claim->family];
    if (factor == factors.end() || least > alpha) {
      each.endpoint = Rank::exploratory;  // the gate is closed
      continue;
    }
    if (each.verdict.finding != Finding::inconclusive) continue;
    const auto corrected = [&](double p) {
      return std::max(least, std::min(1.0, p * factor->second));
    };
    if (!std::isnan(each.p)) each.p_corrected = corrected(each.p);
    if (!std::isnan(each.p_other)) each.p_other_corrected = corrected(each.p_other);
    each.verdict.finding = finding_of(each, alpha);
    least = std::fmin(std::isnan(each.p_corrected) ? 1 : each.p_corrected,
                      std::isnan(each.p_other_corrected) ? 1 : each.p_other_corrected);
  }
}

void decide_exploratory(std::vector<ClaimResult>& results) {
  std::map<std::string, std::vector<std::size_t>> families;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const ClaimResult& each = results[i];
    if (each.endpoint == Rank::exploratory && each.verdict.finding == Finding::inconclusive)
      families[each.claim->family].push_back(i);
  }
  for (const auto& [family, members] : families) {
    std::vector<double> p, other;
    for (const std::size_t i : members) {
      p.push_back(results[i].p);
      other.push_back(results[i].p_other);
    }
    p = stats::benjamini_hochberg(p);
    other = stats::benjamini_hochberg(other);
    for (std::size_t k = 0; k < members.size(); ++k) {
      ClaimResult& each = results[members[k]];
      each.p_corrected = p[k];
      each.p_other_corrected = other[k];
      each.verdict.finding = finding_of(each, kFalseDiscoveryRate);
    }
  }
}

}  // namespace

std::string Verdict::words() const {
  return fmt::format("{}{}", is_decided() && exploratory ? "exploratory: " : "",
                     to_string(finding));
}

double first_level(const ClaimsFile& file) {
  const auto primaries = std::ranges::count(file.claims, Rank::primary, &Claim::endpoint);
  return file.alpha / static_cast<double>(std::max<Index>(1, primaries));
}

std::vector<ClaimResult> decide(const ClaimsFile& file, std::vector<Measured> measured) {
  std::vector<ClaimResult> results;
  for (std::size_t i = 0; i < file.claims.size(); ++i) {
    results.push_back(with_p(file.claims[i], std::move(measured[i])));
  }
  std::map<std::string, double> factors;  // by family, of its primary claim once that is decided
  decide_primaries(results, file.alpha, factors);
  decide_secondaries(results, file.alpha, factors);
  decide_exploratory(results);
  for (ClaimResult& each : results) {
    each.verdict.exploratory = each.endpoint == Rank::exploratory;
    each.alpha = each.verdict.exploratory ? kFalseDiscoveryRate : file.alpha;
  }
  return results;
}

std::vector<ClaimResult> evaluate(const ClaimsFile& file, std::span<const RunRecord* const> runs) {
  std::vector<Measured> measured;
  for (const Claim& claim : file.claims) measured.push_back(measure(claim, file, runs));
  return decide(file, std::move(measured));
}

}  // namespace difftape::study
