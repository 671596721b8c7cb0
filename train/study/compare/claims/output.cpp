#include "train/study/compare/claims/output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "train/study/compare/tables.h"
#include "train/system/number.h"

namespace difftape::study {

namespace {

std::string shown(double difference, const Quantity& quantity) {
  return quantity.scale == Scale::ratio ? fmt::format("{:.3g}", std::exp(difference))
                                        : fmt::format("{:+.{}f}", difference, quantity.digits);
}

/// Returns the interval that decides, for claims that were judged.
std::string deciding_text(const ClaimResult& result) {
  const stats::Interval& found = result.interval;
  if (!std::isfinite(found.half_width)) return "";
  const Quantity& metric = *result.claim->metric;
  return fmt::format("; {:.3g} % interval {} to {}", 100 * (1 - result.level),
                     shown(found.low(), metric), shown(found.high(), metric));
}

/// Returns "v2 1.7388, softmax 1.7948; difference", "v2 against softmax, slope per decade of
/// parameters of differences".
std::string what_was_compared(const ClaimResult& result) {
  const Measured& found = result.measured;
  const Claim& claim = *result.claim;
  const Quantity& metric = *claim.metric;
  const char* differs = what_differs(metric.scale);
  const bool ratio = metric.scale == Scale::ratio;
  if (claim.over != Over::no_sizes) {
    return fmt::format("{} against {}, {} of {}s", found.arm, found.reference,
                       claim.over == Over::slope ? "slope per decade of parameters" : "mean",
                       differs);
  }
  const auto mean = [&](double value) {
    if (claim.terms.size() > 2) return shown(ratio ? std::log(value) : value, metric);
    return ratio ? fmt::format("{:.{}g}", value, metric.digits)
                 : fmt::format("{:.{}f}", value, metric.digits);
  };
  const std::string arm = found.arm + " " + mean(found.arm_mean);
  return fmt::format("{}, {} {}; {}", arm, found.reference, mean(found.reference_mean), differs);
}

std::string sizes_text(const ClaimResult& result) {
  std::vector<std::string> texts;
  for (const GapAtSize& size : result.measured.sizes) {
    texts.push_back(fmt::format("{} at {} parameters (n {})",
                                shown(size.gap.mean, *result.claim->metric),
                                system::grouped(std::llround(size.parameters)), size.seeds));
  }
  return texts.empty() ? "" : fmt::format(" ({})", fmt::join(texts, ", "));
}

std::string claims_text(const JudgedClaims& claims, std::size_t width) {
  std::string text;
  for (const ClaimResult& result : claims.results) {
    if (!result.verdict.is_tested()) continue;
    const Claim& claim = *result.claim;
    const std::string source = claim.source.empty() ? "" : fmt::format(" ({})", claim.source);
    text += system::wrapped(claim.statement + source + ".", width, "");
    text += system::wrapped(numbers_text(result) + ".", width, "    ");
    text += system::wrapped("-> " + verdict_text(result), width, "    ");
  }
  for (const std::string& line : untested(claims.results))
    text += system::wrapped("not tested, " + line, width, "");
  for (const std::string& line : claims_notes(claims.file, claims.results))
    text += system::wrapped(line, width, "");
  return text;
}

}  // namespace

std::string difference_text(const ClaimResult& result) {
  const Quantity& metric = *result.claim->metric;
  const stats::Interval& difference = result.measured.paired.difference;
  std::string text = shown(difference.mean, metric);
  if (std::isnan(difference.half_width)) return text;
  return fmt::format("{} ({} to {})", text, shown(difference.low(), metric),
                     shown(difference.high(), metric));
}

std::string seeds_text(const Measured& found) {
  const Index seeds = found.distinct_seeds();
  const std::string count = fmt::format("{} {}", seeds, seeds == 1 ? "seed" : "seeds");
  return found.count() == seeds ? count : fmt::format("{} pairs of {}", found.count(), count);
}

std::string numbers_text(const ClaimResult& result) {
  const Measured& found = result.measured;
  if (found.seeds.empty()) return "";
  return fmt::format("{}: {} {}, {} at {}{}{}", result.claim->metric->label,
                     what_was_compared(result), difference_text(result), seeds_text(found),
                     found.where, sizes_text(result), deciding_text(result));
}

std::string verdict_text(const ClaimResult& result) {
  const Claim& claim = *result.claim;
  const Verdict& verdict = result.verdict;
  if (verdict.finding == Finding::equivalent) {
    return fmt::format("{}: no {} larger than {:g}", verdict.words(),
                       claim.metric->scale == Scale::ratio ? "factor"
                       : claim.over == Over::slope         ? "slope"
                                                           : what_differs(claim.metric->scale),
                       claim.margin);
  }
  if (verdict.is_decided()) {
    const bool small = claim.expects_difference() && result.within;
    return verdict.words() + (small ? "; the difference is within the margin" : "");
  }
  return verdict.words() + (verdict.reason.empty() ? "" : ": " + verdict.reason);
}

std::vector<std::string> untested(std::span<const ClaimResult> results) {
  std::vector<std::string> lines, reasons;
  for (const ClaimResult& result : results) {
    if (result.verdict.is_tested()) continue;
    const std::size_t at = add_once(reasons, result.verdict.reason);
    if (at == lines.size()) {
      lines.push_back(fmt::format("{}: {}", result.verdict.reason, result.claim->id));
    } else {
      lines[at] += ", " + result.claim->id;
    }
  }
  return lines;
}

std::vector<std::string> claims_notes(const ClaimsFile& file,
                                      std::span<const ClaimResult> results) {
  std::vector<std::string> notes;
  const auto has = [&](Rank endpoint) {
    return std::ranges::any_of(results, [endpoint](const ClaimResult& each) {
      return each.endpoint == endpoint && each.verdict.finding <= Finding::inconclusive;
    });
  };
  const auto changed = std::ranges::count_if(results, [](const ClaimResult& each) {
    return each.verdict.is_tested() && each.claim->endpoint != Rank::exploratory &&
           !each.measured.stated_before;
  });
  notes.push_back(fmt::format("Claims of {} (xxh3 {}).", file.path, file.digest));
  if (file.own_rates) {
    notes.push_back(fmt::format("Own learning rates of {} (xxh3 {}).",
                                file.own_rates->file.string(), file.rates_digest));
  }
  if (changed > 0) {
    notes.push_back(fmt::format(
        "{} {} not preregistered: the runs recorded another claims file or none. {} verdicts are "
        "exploratory.",
        changed, changed == 1 ? "claim was" : "claims were", changed == 1 ? "Its" : "Their"));
  }
  const double level = level_of(file);
  notes.push_back(fmt::format(
      "A verdict is where the {:.3g} % interval of the difference lies; within a margin, the "
      "{:.3g} % interval. The level is alpha, {:g}, over the number of primary claims.{}",
      100 * (1 - level), 100 * (1 - 2 * level), file.alpha,
      has(Rank::secondary) ? " Secondary claims count once the primary claim of their family is "
                             "decided."
                           : ""));
  notes.push_back("Other intervals are 95 % intervals over pairs of runs with the same seed.");
  for (const auto& [name, margin] : file.margins) {
    const bool used = std::ranges::any_of(results, [&, &of = name](const ClaimResult& each) {
      return !each.measured.seeds.empty() && margin_name(*each.claim) == of;
    });
    if (used)
      notes.push_back(fmt::format("Margin of {}: {:g}, {}.", name, margin.margin, margin.reason));
  }
  return notes;
}

system::Table verdict_table(std::span<const ClaimResult> results) {
  system::Table table;
  for (const char* head : {"claim", "source", "endpoint", "measured", "verdict"})
    table.columns.push_back({"", head, true});
  for (const ClaimResult& result : results) {
    if (!result.verdict.is_tested()) continue;
    table.rows.push_back({result.claim->statement, result.claim->source,
                          std::string(to_string(result.endpoint)), numbers_text(result),
                          verdict_text(result)});
  }
  return table;
}

std::string study_text(std::span<const Study> studies, std::size_t width,
                       const JudgedClaims* claims) {
  return tables_text(studies, width) + (claims ? '\n' + claims_text(*claims, width) : "");
}

std::string verdicts_csv(std::span<const ClaimResult> results) {
  std::string csv = fmt::format("{}\n", kVerdictsHeader);
  for (const ClaimResult& result : results) {
    const Claim& claim = *result.claim;
    const Measured& found = result.measured;
    const stats::PairedDifference& paired = found.paired;
    std::vector<std::string> fields{claim.id, std::string(to_string(result.endpoint)),
                                    claim.metric->name, found.arm, found.reference};
    for (const double value :
         {paired.difference.mean, paired.error, paired.degrees, claim.margin_on_axis()})
      fields.push_back(system::csv_number(value));
    for (const Index count : {found.count(), found.distinct_seeds()})
      fields.push_back(fmt::to_string(count));
    fields.emplace_back(to_string(result.verdict.finding));
    fields.push_back(result.verdict.reason);
    csv += system::csv_line(fields);
  }
  return csv;
}

}  // namespace difftape::study
