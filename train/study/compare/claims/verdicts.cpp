#include "train/study/compare/claims/verdicts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "train/stats/decision.h"
#include "train/system/number.h"

namespace difftape::study {

namespace {

bool lies_between(const stats::Interval& interval, double low, double high) {
  return interval.low() >= low && interval.high() <= high;
}

/// Decides a claim whose planned seeds have ended.
void judge(ClaimResult& result) {
  using enum Finding;
  const Claim& claim = *result.claim;
  const double margin = claim.margin_on_axis();  // NaN: nothing is within it or beyond it
  const stats::PairedDifference& found = result.measured.paired;
  const stats::Interval one_sided = stats::interval_at(found, 2 * result.level);
  result.interval = stats::interval_at(found, result.level);
  result.within = lies_between(one_sided, -margin, margin);
  const auto lies_beyond = [](const stats::Interval& interval, double limit) {
    return interval.low() > limit || interval.high() < -limit;
  };
  Finding& finding = result.verdict.finding;
  if (claim.expects_difference()) {
    const bool as_expected = (found.difference.mean < 0) == (claim.expect == Expect::lower);
    finding = lies_beyond(result.interval, 0) ? (as_expected ? supported : contradicted)
              : result.within                 ? equivalent
                                              : inconclusive;
  } else if (claim.expect == Expect::equivalent) {
    finding = result.within                          ? supported
              : lies_beyond(result.interval, margin) ? contradicted
                                                     : inconclusive;
  } else {
    finding = one_sided.high() <= margin ? supported
              : one_sided.low() > margin ? contradicted
                                         : inconclusive;
  }
}

ClaimResult judged(const Claim& claim, Measured measured, double level) {
  ClaimResult result{&claim, std::move(measured), claim.endpoint, level};
  const Measured& found = result.measured;
  Verdict& verdict = result.verdict;
  const Index pairs = found.count();
  if (pairs > 0 && !found.stated_before) result.endpoint = Rank::exploratory;
  verdict.reason = found.reason;
  if (!found.reason.empty()) return result;
  if (pairs < kSeedsForVerdict) {
    verdict.reason = pairs == 1 ? std::string("one seed: no interval")
                                : fmt::format("{} seeds; need {}", pairs, kSeedsForVerdict);
    return result;
  }
  verdict.finding = Finding::inconclusive;
  if (found.missing > 0) {
    verdict.reason = fmt::format("{} of {} seeds have ended", pairs, pairs + found.missing);
  } else if (!found.failed_control.empty()) {
    verdict = {Finding::not_testable, false, found.failed_control};
  } else {
    judge(result);
  }
  return result;
}

/// Makes secondary claims exploratory that come after a claim of their family that is not decided,
/// or not preregistered.
void close_gates(std::vector<ClaimResult>& results) {
  std::map<std::string, bool> open;
  for (const ClaimResult& each : results)
    if (each.endpoint == Rank::primary) open[each.claim->family] = each.verdict.is_decided();
  for (ClaimResult& each : results) {
    if (each.claim->endpoint != Rank::secondary) continue;
    bool& gate = open[each.claim->family];
    if (!gate) each.endpoint = Rank::exploratory;
    gate = gate && each.endpoint == Rank::secondary && each.verdict.is_decided();
  }
}

}  // namespace

std::string Verdict::words() const {
  return fmt::format("{}{}", is_decided() && exploratory ? "exploratory: " : "",
                     to_string(finding));
}

double level_of(const ClaimsFile& file) {
  const auto primaries = std::ranges::count(file.claims, Rank::primary, &Claim::endpoint);
  return file.alpha / static_cast<double>(std::max<Index>(1, primaries));
}

std::vector<ClaimResult> decide(const ClaimsFile& file, std::vector<Measured> measured) {
  std::vector<ClaimResult> results;
  for (std::size_t i = 0; i < file.claims.size(); ++i)
    results.push_back(judged(file.claims[i], std::move(measured[i]), level_of(file)));
  close_gates(results);
  for (ClaimResult& each : results) each.verdict.exploratory = each.endpoint == Rank::exploratory;
  return results;
}

JudgedClaims::JudgedClaims(ClaimsFile claims, std::span<const Row* const> runs)
    : file(std::move(claims)) {
  std::vector<Measured> measured;
  for (const Claim& claim : file.claims) measured.push_back(measure(claim, file, runs));
  results = decide(file, std::move(measured));
  if (std::ranges::all_of(runs, &Row::reads_text)) data = run::DataKind::text;
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
  std::string unit = metric.scale == Scale::ratio ? "factor" : unit_of(metric, data);
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
  const double level = level_of(file), margin = claim.margin_on_axis();
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
             fmt::format(
                 "The level is {:.3g}: alpha divided by the number of primary claims. SD: planned "
                 "standard deviation of the differences of single seeds. No difference: "
                 "power to find that the difference is within, or not above, the margin. "
                 "Unit: of SD, +-, found and margin.",
                 level_of(file)),
             width, "") +
         others;
}

}  // namespace difftape::study
