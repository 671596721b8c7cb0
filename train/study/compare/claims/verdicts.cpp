#include "train/study/compare/claims/verdicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "train/stats/decision.h"
#include "train/study/compare/claims/questions.h"

namespace difftape::study {

namespace {

/// The p values of both questions, corrected, and by how much the smallest p of such a place in the
/// order was multiplied.
struct Corrected {
  std::vector<double> p;
  std::vector<double> factor;
};

/// Holm's correction with its factors.
Corrected holm_with_factors(const std::vector<double>& p) {
  Corrected result{stats::holm(p), {}};
  const auto tests = std::ranges::count_if(p, [](double each) { return !std::isnan(each); });
  for (const double each : p) {
    const auto smaller = std::ranges::count_if(p, [each](double other) { return other < each; });
    result.factor.push_back(static_cast<double>(tests - smaller));
  }
  return result;
}

/// How many seeds the plan still lacks.
Index missing_seeds(const ClaimsFile& file, const Measured& measured) {
  const Index planned = file.looks ? stats::kLooks.back().pairs : measured.planned;
  return std::max<Index>(0, planned - std::ssize(measured.seeds));
}

ClaimResult with_p(const Claim& claim, const ClaimsFile& file, Measured measured) {
  ClaimResult result{&claim, std::move(measured), claim.endpoint};
  const Measured& found = result.measured;
  if (!found.seeds.empty() && !found.stated_before) result.endpoint = Rank::exploratory;
  result.reason = found.reason;
  if (!result.reason.empty()) return result;
  const Index seeds = std::ssize(found.seeds);
  if (seeds < kSeedsForVerdict) {
    result.reason = seeds == 1 ? std::string("one seed: no interval")
                               : fmt::format("{} seeds; need {}", seeds, kSeedsForVerdict);
    return result;
  }
  const Index missing = missing_seeds(file, found);
  if (missing == 0 && !found.failed_control.empty()) {
    result.reason = found.failed_control;
    result.verdict = Verdict::not_testable;
    return result;
  }
  result.verdict = Verdict::inconclusive;
  result.lower = found.paired.difference.mean < 0;
  std::vector<double> differences;
  for (std::size_t i = 0; i < found.a.size(); ++i) differences.push_back(found.a[i] - found.b[i]);
  result.p_signs = stats::sign_flip_p(differences);
  if (missing > 0) {
    result.reason = fmt::format("{} of {} seeds have ended", seeds, seeds + missing);
    if (!file.looks || !found.failed_control.empty()) return result;
  }
  const double margin = claim.margin_on_axis();
  const auto tested = [&](Test test) -> Tested {
    if (needs_margin(test) && std::isnan(margin)) return {};
    if (file.looks && finds_differences(test)) return look(test, margin, found);
    if (missing > 0) return {};
    return of_pairs(test, margin, found, found.a.size());
  };
  const Questions questions = questions_of(claim.expect);
  const Tested own = tested(questions.own), other = tested(questions.other);
  result.p = own.p;
  result.p_other = other.p;
  if (!std::isnan(own.p) && finds_differences(questions.own)) result.lower = own.lower;
  if (!std::isnan(other.p) && finds_differences(questions.other)) result.lower = other.lower;
  result.bounded = own.left_out;
  return result;
}

/// What the corrected p values say.
Verdict verdict_of(const ClaimResult& result, double level) {
  const bool own = result.p_corrected <= level, other = result.p_other_corrected <= level;
  switch (result.claim->expect) {
    case Expect::equivalent:
    case Expect::not_higher:
      return own ? Verdict::supported : other ? Verdict::contradicted : Verdict::inconclusive;
    case Expect::lower:
    case Expect::higher:
      break;
  }
  if (own) {
    const bool as_expected = result.lower == (result.claim->expect == Expect::lower);
    return as_expected ? Verdict::supported : Verdict::contradicted;
  }
  return other ? Verdict::equivalent : Verdict::inconclusive;
}

/// A primary claim that is not tested here counts all the same: it will be once its seeds have
/// ended, or in another sweep of the same file.
double holm_p(double p) { return std::isnan(p) ? 1.0 : p; }

void decide_primaries(std::vector<ClaimResult>& results, double alpha,
                      std::map<std::string, double>& factors) {
  std::vector<double> p, other;
  for (const ClaimResult& each : results) {
    const bool counts = each.endpoint == Rank::primary;
    p.push_back(counts ? holm_p(each.p) : kNone);
    const bool asks_other = !std::isnan(each.p_other) || !std::isnan(each.claim->margin);
    other.push_back(counts && asks_other ? holm_p(each.p_other) : kNone);
  }
  const Corrected corrected = holm_with_factors(p), corrected_other = holm_with_factors(other);
  for (std::size_t i = 0; i < results.size(); ++i) {
    ClaimResult& each = results[i];
    if (each.endpoint != Rank::primary || each.verdict != Verdict::inconclusive) continue;
    if (!std::isnan(each.p)) each.p_corrected = corrected.p[i];
    if (!std::isnan(each.p_other)) each.p_other_corrected = corrected_other.p[i];
    each.verdict = verdict_of(each, alpha);
    if (!is_decided(each.verdict)) continue;
    const bool by_own = each.p_corrected <= alpha;
    factors[each.claim->family] = by_own ? corrected.factor[i] : corrected_other.factor[i];
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
    if (each.verdict != Verdict::inconclusive) continue;
    const auto corrected = [&](double p) {
      return std::max(least, std::min(1.0, p * factor->second));
    };
    if (!std::isnan(each.p)) each.p_corrected = corrected(each.p);
    if (!std::isnan(each.p_other)) each.p_other_corrected = corrected(each.p_other);
    each.verdict = verdict_of(each, alpha);
    least = std::fmin(std::isnan(each.p_corrected) ? 1 : each.p_corrected,
                      std::isnan(each.p_other_corrected) ? 1 : each.p_other_corrected);
  }
}

void decide_exploratory(std::vector<ClaimResult>& results) {
  std::map<std::string, std::vector<std::size_t>> families;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const ClaimResult& each = results[i];
    if (each.endpoint == Rank::exploratory && each.verdict == Verdict::inconclusive)
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
      each.verdict = verdict_of(each, kFalseDiscoveryRate);
    }
  }
}

}  // namespace

bool is_decided(Verdict verdict) {
  return verdict == Verdict::supported || verdict == Verdict::contradicted ||
         verdict == Verdict::equivalent;
}

bool is_open_or_decided(const ClaimResult& result) {
  return result.verdict == Verdict::inconclusive || is_decided(result.verdict);
}

double worst_level(const ClaimsFile& file) {
  const auto primaries = std::ranges::count(file.claims, Rank::primary, &Claim::endpoint);
  return file.alpha / static_cast<double>(std::max<Index>(1, primaries));
}

std::vector<ClaimResult> decide(const ClaimsFile& file, std::vector<Measured> measured) {
  std::vector<ClaimResult> results;
  for (std::size_t i = 0; i < file.claims.size(); ++i) {
    results.push_back(with_p(file.claims[i], file, std::move(measured[i])));
  }
  std::map<std::string, double> factors;  // by family, of its primary claim once that is decided
  decide_primaries(results, file.alpha, factors);
  decide_secondaries(results, file.alpha, factors);
  decide_exploratory(results);
  for (ClaimResult& each : results) {
    each.alpha = each.endpoint == Rank::exploratory ? kFalseDiscoveryRate : file.alpha;
    each.level = worst_level(file);
    if (each.verdict == Verdict::inconclusive && each.bounded && each.reason.empty())
      each.reason = "the swept learning rates end too early";
  }
  return results;
}

std::vector<ClaimResult> evaluate(const ClaimsFile& file, std::span<const RunRecord* const> runs) {
  std::vector<Measured> measured;
  for (const Claim& claim : file.claims) measured.push_back(measure(claim, file, runs));
  return decide(file, std::move(measured));
}

}  // namespace difftape::study
