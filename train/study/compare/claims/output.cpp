#include "train/study/compare/claims/output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "train/study/compare/answer.h"
#include "train/study/compare/claims/power.h"

namespace difftape::study {

namespace {

std::string number(double value, const Quantity& quantity) {
  return quantity.scale == Scale::ratio ? fmt::format("{:.{}g}", value, quantity.digits)
                                        : fmt::format("{:.{}f}", value, quantity.digits);
}

/// A difference on the axis, as it is read: a factor, or a signed number.
std::string shown(double difference, const Quantity& quantity) {
  return quantity.scale == Scale::ratio ? fmt::format("{:.3g}", std::exp(difference))
                                        : fmt::format("{:+.{}f}", difference, quantity.digits);
}

/// What p and p_other are of.
std::pair<const char*, const char*> what_is_tested(Expect expect) {
  switch (expect) {
    case Expect::equivalent:
      return {"p within the margin", "beyond the margin"};
    case Expect::not_higher:
      return {"p not above the margin", "above the margin"};
    case Expect::lower:
    case Expect::higher:
      break;
  }
  return {"p", "within the margin"};
}

std::string p_text(const ClaimResult& result) {
  std::string text;
  const auto add = [&text](const char* what, double p) {
    if (!std::isnan(p)) text += fmt::format("{}{} {:.2g}", text.empty() ? "; " : ", ", what, p);
  };
  const auto [own, other] = what_is_tested(result.claim->expect);
  add(own, result.p);
  add("corrected", result.p_corrected);
  add("by signs", result.p_signs);
  add(other, result.p_other_corrected);
  return text;
}

/// What a published size says beside the interval.
std::string published_text(const ClaimResult& result) {
  const Claim& claim = *result.claim;
  const stats::Limits found = difference_limits(result.measured);
  if (std::isnan(claim.published_low) || std::isnan(found.low + found.high)) return "";
  const double low = claim.on_axis(claim.published_low), high = claim.on_axis(claim.published_high);
  const bool apart = found.high < low || found.low > high;
  const bool inside = found.low >= low && found.high <= high;
  return fmt::format("; the published {:g} to {:g} {}", claim.published_low, claim.published_high,
                     apart    ? "lies outside the interval"
                     : inside ? "contains the interval"
                              : "overlaps the interval");
}

bool is_tested(const ClaimResult& result) { return result.verdict != Verdict::not_tested; }

}  // namespace

JudgedClaims::JudgedClaims(ClaimsFile claims, std::span<const RunRecord* const> runs)
    : file(std::move(claims)), results(evaluate(file, runs)) {}

const char* const kVerdictsHeader =
    "claim,family,endpoint,treated_as,metric,scale,arm,reference,arm_mean,reference_mean,"
    "difference,"
    "half_width,margin,seeds,p,p_signs,p_corrected,p_other,p_other_corrected,verdict,"
    "seeds_to_decide,reason";

stats::Limits difference_limits(const Measured& measured) {
  const stats::Interval& difference = measured.paired.difference;
  return {measured.bound().may_be_lower ? -kInfinity : difference.low(),
          measured.bound().may_be_higher ? kInfinity : difference.high()};
}

std::string difference_text(const ClaimResult& result) {
  const Quantity& quantity = *result.claim->metric;
  const Measured& found = result.measured;
  const stats::Interval& difference = found.paired.difference;
  const auto [may_be_lower, may_be_higher] = found.bound();
  if (may_be_lower && may_be_higher) return "not known";
  const char* bound = may_be_lower ? "at most " : may_be_higher ? "at least " : "";
  const std::string text = bound + shown(difference.mean, quantity);
  if (std::isnan(difference.half_width)) return text;
  const std::string low = shown(difference.low(), quantity),
                    high = shown(difference.high(), quantity);
  return text + (may_be_lower    ? fmt::format(" (to {})", high)
                 : may_be_higher ? fmt::format(" (from {})", low)
                                 : fmt::format(" ({} to {})", low, high));
}

std::string verdict_words(const ClaimResult& result) {
  const bool exploratory = is_decided(result.verdict) && result.endpoint == Rank::exploratory;
  return fmt::format("{}{}", exploratory ? "exploratory: " : "", to_string(result.verdict));
}

std::string numbers_text(const ClaimResult& result) {
  const Measured& found = result.measured;
  if (found.seeds.empty()) return "";
  const Quantity& quantity = *result.claim->metric;
  const bool of_differences = result.claim->compared_with.has_value();
  const auto mean = [&](double value) {
    if (!of_differences) return number(value, quantity);
    return shown(quantity.scale == Scale::ratio ? std::log(value) : value, quantity);
  };
  const std::string other =
      result.claim->has_value()
          ? fmt::format("; {} to {}", what_differs(quantity.scale), found.reference)
          : fmt::format(", {} {}; {}", found.reference, mean(found.reference_mean),
                        what_differs(quantity.scale));
  const auto exact = std::ranges::count_if(found.bounds, &Bound::exact);
  const auto ends = std::ssize(found.bounds) - exact;
  const std::string beyond =
      ends > 0 ? fmt::format("; in {} of {} at an end of the learning rates, or beyond", ends,
                             found.seeds.size())
               : "";
  return fmt::format("{}: {} {}{} {}, {} {} at {}{}{}{}", quantity.label, found.arm,
                     mean(found.arm_mean), other, difference_text(result), found.seeds.size(),
                     found.seeds.size() == 1 ? "seed" : "seeds", found.where, p_text(result),
                     published_text(result), beyond);
}

std::string verdict_text(const ClaimResult& result) {
  const Claim& claim = *result.claim;
  const std::string text = verdict_words(result);
  const auto with = [&text](const std::string& more) {
    return more.empty() ? text : fmt::format("{}: {}", text, more);
  };
  const bool expects_difference = claim.expect == Expect::lower || claim.expect == Expect::higher;
  const bool small = expects_difference && result.p_other_corrected <= result.alpha;
  const std::string size = small ? "; the difference is within the margin" : "";
  switch (result.verdict) {
    case Verdict::supported:
      return with(claim.if_supported) + size;
    case Verdict::contradicted:
      return with(claim.if_contradicted) + size;
    case Verdict::equivalent:
      return with(claim.metric->scale == Scale::ratio
                      ? fmt::format("no factor larger than {:g}", claim.margin)
                      : fmt::format("no {} larger than {:g}", what_differs(claim.metric->scale),
                                    claim.margin));
    case Verdict::inconclusive:
      if (!result.reason.empty()) return with(result.reason);
      if (const Index seeds = seeds_to_decide(result); seeds > 0)
        return with(fmt::format("about {} seeds would decide", seeds));
      return with("1000 seeds would not decide");
    case Verdict::not_testable:
    case Verdict::not_tested:
      break;
  }
  return with(result.reason);
}

std::vector<std::string> untested(std::span<const ClaimResult> results) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_reason;
  for (const ClaimResult& result : results) {
    if (is_tested(result)) continue;
    auto found = std::ranges::find(by_reason, result.reason, [](const auto& r) { return r.first; });
    if (found == by_reason.end()) found = by_reason.insert(found, {result.reason, {}});
    found->second.push_back(result.claim->id);
  }
  std::vector<std::string> lines;
  for (const auto& [reason, ids] : by_reason) {
    lines.push_back(fmt::format("{}: {}", reason, fmt::join(ids, ", ")));
  }
  return lines;
}

std::vector<std::string> claims_notes(const ClaimsFile& file,
                                      std::span<const ClaimResult> results) {
  std::vector<std::string> notes;
  const auto count = [&](Rank endpoint) {
    return std::ranges::count_if(results, [endpoint](const ClaimResult& each) {
      return each.endpoint == endpoint && is_open_or_decided(each);
    });
  };
  const auto primaries = count(Rank::primary);
  const auto changed = std::ranges::count_if(results, [](const ClaimResult& each) {
    return is_tested(each) && each.claim->endpoint != Rank::exploratory &&
           !each.measured.stated_before;
  });
  notes.push_back(fmt::format("Claims of {} (xxh3 {}).", file.path, file.digest));
  if (changed > 0) {
    notes.push_back(fmt::format(
        "{} of them {} not stated before the runs, which know another claims file or none: what "
        "they say is exploratory.",
        changed, changed == 1 ? "was" : "were"));
  }
  if (primaries > 0) {
    notes.push_back(fmt::format(
        "p values of primary claims are corrected by Holm over {}, those of secondary ones count "
        "once their primary one is decided; level {:g}.",
        std::ranges::count(results, Rank::primary, &ClaimResult::endpoint), file.alpha));
  }
  if (count(Rank::exploratory) > 0) {
    notes.push_back(
        fmt::format("An exploratory claim has a verdict if it passes Benjamini and Hochberg's "
                    "correction in its family at {:g}.",
                    kFalseDiscoveryRate));
  }
  notes.emplace_back("Intervals are of 95 %, over pairs of runs with the same seed.");
  return notes;
}

system::Table verdict_table(std::span<const ClaimResult> results) {
  system::Table table;
  for (const char* head : {"claim", "source", "endpoint", "measured", "verdict"}) {
    table.columns.push_back({"", head, true});
  }
  for (const ClaimResult& result : results) {
    if (!is_tested(result)) continue;
    table.rows.push_back({result.claim->statement, result.claim->source,
                          std::string(to_string(result.endpoint)), numbers_text(result),
                          verdict_text(result)});
  }
  return table;
}

std::string claims_text(const JudgedClaims& claims, std::size_t width) {
  const auto& [file, results] = std::tie(claims.file, claims.results);
  std::string text;
  for (const ClaimResult& result : results) {
    if (!is_tested(result)) continue;
    const Claim& claim = *result.claim;
    const std::string source = claim.source.empty() ? "" : fmt::format(" ({})", claim.source);
    text += system::wrapped(claim.statement + source + ".", width, "");
    text += system::wrapped(numbers_text(result) + ".", width, "    ");
    text += system::wrapped("-> " + verdict_text(result), width, "    ");
  }
  for (const std::string& line : untested(results)) {
    text += system::wrapped("not tested, " + line, width, "");
  }
  for (const std::string& line : claims_notes(file, results)) {
    text += system::wrapped(line, width, "");
  }
  return text;
}

std::string study_text(const Study& study, std::size_t width, const JudgedClaims* claims) {
  return tables_text(study, width) + (claims ? '\n' + claims_text(*claims, width) : "");
}

std::string verdicts_csv(std::span<const ClaimResult> results) {
  std::string csv = fmt::format("{}\n", kVerdictsHeader);
  for (const ClaimResult& result : results) {
    const Claim& claim = *result.claim;
    const Measured& found = result.measured;
    std::vector<std::string> fields{claim.id,
                                    claim.family,
                                    std::string(to_string(claim.endpoint)),
                                    std::string(to_string(result.endpoint)),
                                    claim.metric->name,
                                    std::string(to_string(claim.metric->scale)),
                                    found.arm,
                                    found.reference};
    const auto add = [&fields](double value) { fields.push_back(system::csv_number(value)); };
    const stats::Interval& difference = found.paired.difference;
    for (const double value : {found.arm_mean, found.reference_mean, difference.mean,
                               difference.half_width, claim.margin_on_axis()}) {
      add(value);
    }
    fields.push_back(fmt::to_string(found.seeds.size()));
    for (const double value :
         {result.p, result.p_signs, result.p_corrected, result.p_other, result.p_other_corrected}) {
      add(value);
    }
    fields.emplace_back(to_string(result.verdict));
    const bool more_would = result.verdict == Verdict::inconclusive && !result.bounded;
    const Index needed = more_would ? seeds_to_decide(result) : 0;
    fields.push_back(needed > 0 ? fmt::to_string(needed) : "");
    fields.push_back(result.reason);
    csv += system::csv_line(fields);
  }
  return csv;
}

}  // namespace difftape::study
