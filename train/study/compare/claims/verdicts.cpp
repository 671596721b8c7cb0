#include "train/study/compare/claims/verdicts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "train/stats/decision.h"
#include "train/system/number.h"

namespace difftape::study {

namespace {

/// Returns the p values of a claim's own hypothesis and of the opposite one; NaN without a margin.
std::pair<double, double> p_values(const Claim& claim, const stats::PairedDifference& paired) {
  const double margin = claim.margin_on_axis(), mean = paired.difference.mean;
  // One-sided p of a true value above `from`, for an estimate of `estimate`.
  const auto above = [&](double estimate, double from) {
    stats::PairedDifference found = paired;
    found.difference.mean = estimate;
    return stats::upper_p(found, from);
  };
  const double within = std::isnan(margin) ? kNone : stats::equivalence_p(paired, margin);
  if (claim.expects_difference()) return {paired.p, within};
  if (std::isnan(margin)) return {kNone, kNone};
  if (claim.expect == Expect::not_higher) return {above(-mean, -margin), above(mean, margin)};
  return {within, std::min(1.0, 2 * above(std::abs(mean), margin))};
}

ClaimResult with_p(const Claim& claim, Measured measured) {
  ClaimResult result{&claim, std::move(measured), claim.endpoint};
  const Measured& found = result.measured;
  Verdict& verdict = result.verdict;
  const Index seeds = found.count();
  if (seeds > 0 && !found.stated_before) result.endpoint = Rank::exploratory;
  verdict.reason = found.reason;
  if (!found.reason.empty()) return result;
  if (seeds < kSeedsForVerdict) {
    verdict.reason = seeds == 1 ? std::string("one seed: no interval")
                                : fmt::format("{} seeds; need {}", seeds, kSeedsForVerdict);
    return result;
  }
  if (found.missing == 0 && !found.failed_control.empty()) {
    verdict = {Finding::not_testable, false, found.failed_control};
    return result;
  }
  verdict.finding = Finding::inconclusive;
  result.p_signs = stats::sign_flip_p(found.gaps());
  if (found.missing > 0) {
    verdict.reason = fmt::format("{} of {} seeds have ended", seeds, seeds + found.missing);
  } else {
    std::tie(result.p, result.p_other) = p_values(claim, found.paired);
  }
  return result;
}

bool is_open(const ClaimResult& result) { return result.verdict.finding == Finding::inconclusive; }

void take(ClaimResult& result, double own, double other, double level) {
  result.p_corrected = own;
  result.p_other_corrected = other;
  Finding& finding = result.verdict.finding;
  if (own <= level) {
    const bool lower = result.measured.paired.difference.mean < 0;
    const bool as_expected =
        !result.claim->expects_difference() || lower == (result.claim->expect == Expect::lower);
    finding = as_expected ? Finding::supported : Finding::contradicted;
  } else if (other <= level) {
    finding = result.claim->expects_difference() ? Finding::equivalent : Finding::contradicted;
  }
}

/// Factors, by family, that multiplied the p values of a decided primary claim.
using Factors = std::map<std::string, double>;

/// Decides the primary claims. Untested ones count in the correction, because they will be tested
/// once their seeds have ended, or in another sweep of the same file.
Factors decide_primaries(std::vector<ClaimResult>& results, double alpha) {
  std::vector<ClaimResult*> primaries;
  std::vector<stats::TwoHypotheses> questions;
  for (ClaimResult& each : results) {
    if (each.endpoint != Rank::primary) continue;
    primaries.push_back(&each);
    const bool difference = each.claim->expects_difference();
    const bool asks_other = !difference || !std::isnan(each.claim->margin);
    questions.push_back({.own = each.p,
                         .other = asks_other ? std::optional(each.p_other) : std::nullopt,
                         .complementary = !difference});
  }
  const std::vector<stats::TwoCorrected> corrected = stats::joint_holm(questions);
  Factors factors;
  for (std::size_t k = 0; k < primaries.size(); ++k) {
    ClaimResult& each = *primaries[k];
    if (!is_open(each)) continue;
    take(each, corrected[k].own, corrected[k].other, alpha);
    if (!each.verdict.is_decided()) continue;
    const bool by_own = each.p_corrected <= alpha;
    factors[each.claim->family] = by_own ? corrected[k].own_factor : corrected[k].other_factor;
  }
  return factors;
}

/// Decides the secondary claims in fixed order, at the level of the family's primary claim.
void decide_secondaries(std::vector<ClaimResult>& results, double alpha, const Factors& factors) {
  std::map<std::string, double> before;
  for (ClaimResult& each : results) {
    if (each.claim->endpoint != Rank::secondary) continue;
    const auto factor = factors.find(each.claim->family);
    double& least = before[each.claim->family];
    if (each.endpoint != Rank::secondary) {
      least = 1;  // not preregistered, so the gate is closed for later ones
      continue;
    }
    if (factor == factors.end() || least > alpha) {
      each.endpoint = Rank::exploratory;  // the gate is closed
      continue;
    }
    if (!is_open(each)) {
      least = 1;  // not tested, or not testable here
      continue;
    }
    const auto corrected = [&](double p) {
      return std::isnan(p) ? p : std::max(least, std::min(1.0, p * factor->second));
    };
    take(each, corrected(each.p), corrected(each.p_other), alpha);
    least = std::fmin(std::isnan(each.p_corrected) ? 1 : each.p_corrected,
                      std::isnan(each.p_other_corrected) ? 1 : each.p_other_corrected);
  }
}

void decide_exploratory(std::vector<ClaimResult>& results) {
  std::map<std::string, std::vector<ClaimResult*>> families;
  for (ClaimResult& each : results) {
    if (each.endpoint == Rank::exploratory && is_open(each))
      families[each.claim->family].push_back(&each);
  }
  for (const auto& [family, members] : families) {
    std::vector<double> own, other;
    for (const ClaimResult* each : members) {
      own.push_back(each->p);
      other.push_back(each->p_other);
    }
    own = stats::benjamini_hochberg(own);
    other = stats::benjamini_hochberg(other);
    for (std::size_t k = 0; k < members.size(); ++k)
      take(*members[k], own[k], other[k], kFalseDiscoveryRate);
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
  for (std::size_t i = 0; i < file.claims.size(); ++i)
    results.push_back(with_p(file.claims[i], std::move(measured[i])));
  const Factors factors = decide_primaries(results, file.alpha);
  decide_secondaries(results, file.alpha, factors);
  decide_exploratory(results);
  for (ClaimResult& each : results) {
    each.verdict.exploratory = each.endpoint == Rank::exploratory;
    each.alpha = each.verdict.exploratory ? kFalseDiscoveryRate : file.alpha;
  }
  return results;
}

JudgedClaims::JudgedClaims(ClaimsFile claims, std::span<const RunRecord* const> runs)
    : file(std::move(claims)) {
  std::vector<Measured> measured;
  for (const Claim& claim : file.claims) measured.push_back(measure(claim, file, runs));
  results = decide(file, std::move(measured));
}

namespace {

double smallest_found(double error, double degrees, double level) {
  double low = 0, high = 100;
  while (high - low > 1e-6) {
    const double middle = (low + high) / 2;
    const double power = stats::two_sided_power(middle, error, degrees, level);
    (power < kPower ? low : high) = middle;
  }
  return high;
}

std::string shown(const Claim& claim, double on_axis) {
  return claim.metric->scale == Scale::ratio ? system::number(std::exp(on_axis), "x{:.3g}", "-")
                                             : system::number(on_axis, "{:.3g}", "-");
}

/// Returns the unit of a difference on the axis of comparison.
std::string unit_of(const Claim& claim, run::DataKind data) {
  const Quantity& metric = *claim.metric;
  std::string unit = metric.scale == Scale::ratio ? "factor" : metric.unit;
  if (unit == run::loss_unit(run::DataKind::tokens)) unit = run::loss_unit(data);
  if (metric.scale == Scale::root) unit = fmt::format("sqrt({})", unit);
  return unit + (claim.over == Over::slope ? " per decade" : "");
}

}  // namespace

Power power_of(const Claim& claim, const ClaimsFile& file, Index seeds) {
  Power power{claim.planned_pairs()};
  if (power.pairs == std::vector<Index>{0}) power.pairs = {seeds};
  const bool sizes_known = claim.over == Over::no_sizes || !claim.seeds_of_size.empty();
  const bool decides =
      std::ranges::all_of(power.pairs, [](Index each) { return each >= kSeedsForVerdict; });
  if (!sizes_known || claim.over == Over::slope || !decides) return power;
  double variance = 0, degrees = 0;  // for a mean over sizes and single differences of variance 1
  for (const Index each : power.pairs) {
    variance += 1 / static_cast<double>(each);
    degrees += static_cast<double>(each - 1);
  }
  const double error = std::sqrt(variance) / static_cast<double>(power.pairs.size());
  const double level = first_level(file), margin = claim.margin_on_axis();
  power.half_width = stats::student_t_quantile(0.975, degrees) * error;
  if (claim.expects_difference()) power.found = smallest_found(error, degrees, level);
  if (std::isnan(claim.planned_sd) || std::isnan(margin)) return power;
  const double planned = error * claim.on_axis(claim.planned_sd);
  power.of_none = claim.expect == Expect::not_higher
                      ? stats::one_sided_power(margin, planned, degrees, level)
                      : stats::equivalence_power(margin, planned, degrees, level);
  return power;
}

system::Table power_table(const ClaimsFile& file, Index seeds,
                          std::span<const std::string> elsewhere, run::DataKind data) {
  system::Table table{{{"", "claim", true}, {"", "endpoint", true}}, {}};
  for (const char* head : {"seeds", "SD", "95 % +-", "found at power .8"})
    table.columns.push_back({"", head});
  for (const char* head : {"margin", "power"}) table.columns.push_back({"no difference", head});
  table.columns.push_back({"", "unit", true});
  for (const Claim& claim : file.claims) {
    const bool here = std::ranges::find(elsewhere, claim.id) == elsewhere.end();
    if (!here || claim.endpoint == Rank::exploratory) continue;
    const Power power = power_of(claim, file, seeds);
    const double sd = std::isnan(claim.planned_sd) ? kNone : claim.on_axis(claim.planned_sd);
    const auto size = [&](double in_sd) {
      return std::isnan(sd) && !std::isnan(in_sd) ? fmt::format("{:.2f} SD", in_sd)
                                                  : shown(claim, in_sd * sd);
    };
    table.rows.push_back({claim.id, std::string(to_string(claim.endpoint)),
                          fmt::format("{}", fmt::join(power.pairs, " + ")), shown(claim, sd),
                          size(power.half_width), size(power.found),
                          shown(claim, claim.margin_on_axis()),
                          system::number(power.of_none, "{:.2f}", "-"), unit_of(claim, data)});
  }
  return table;
}

std::string power_text(const ClaimsFile& file, Index seeds, std::size_t width,
                       std::span<const std::string> elsewhere, run::DataKind data) {
  const system::Table table = power_table(file, seeds, elsewhere, data);
  const std::string others =
      elsewhere.empty()
          ? ""
          : system::wrapped(fmt::format("Claims about other sweeps, since no run here "
                                        "matches their 'where': {}.",
                                        fmt::join(elsewhere, ", ")),
                            width, "");
  if (table.rows.empty())
    return fmt::format("{} has no primary claim{}: all are exploratory\n{}", file.path,
                       elsewhere.empty() ? "" : " about these runs", others);
  return to_text(table, width, 1) +
         system::wrapped(
             fmt::format("The level is {:.3g}, as in the first step of the correction. SD: planned "
                         "standard deviation of the differences of single seeds. No difference: "
                         "power to find that the difference is within, or not above, the margin. "
                         "Unit: of SD, +-, found and margin.",
                         first_level(file)),
             width, "") +
         others;
}

}  // namespace difftape::study
