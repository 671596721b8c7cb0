#include "train/study/compare/claims/output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "train/study/compare/answer.h"
#include "train/study/compare/claims/questions.h"

namespace difftape::study {

namespace {

/// What the intervals have the spread of.
std::string interval_note(std::span<const ClaimResult> results) {
  const auto with_text = std::ranges::count_if(
      results, [](const ClaimResult& each) { return each.measured.group_count > 0; });
  const auto with_numbers = std::ranges::count_if(
      results, [](const ClaimResult& each) { return !each.measured.seeds.empty(); });
  const std::string seeds = "Intervals are of 95 %, over pairs of runs with the same seed";
  if (with_text == 0) return seeds + ".";
  return fmt::format("{}; {} have the sampling error of the held-out text too.", seeds,
                     with_text == with_numbers ? "they" : "those of final losses");
}

/// The margins of the claims that have numbers, and their reasons.
std::vector<std::string> margin_notes(const ClaimsFile& file,
                                      std::span<const ClaimResult> results) {
  std::vector<std::string> notes;
  for (const auto& [name, margin] : file.margins) {
    const bool used = std::ranges::any_of(results, [&, &of = name](const ClaimResult& each) {
      return !each.measured.seeds.empty() && margin_name(*each.claim) == of;
    });
    if (used)
      notes.push_back(fmt::format("Margin of {}: {:g}, {}.", name, margin.margin, margin.reason));
  }
  return notes;
}

}  // namespace

JudgedClaims::JudgedClaims(ClaimsFile claims, std::span<const RunRecord* const> runs)
    : file(std::move(claims)), results(evaluate(file, runs)) {}

const char* const kVerdictsHeader =
    "claim,family,endpoint,treated_as,metric,scale,arm,reference,over,arm_mean,reference_mean,"
    "difference,half_width,degrees,margin,seeds,p_difference,p_difference_corrected,p_equivalence,"
    "p_equivalence_corrected,p_signs,verdict,interval_of,reason";

std::vector<std::string> untested(std::span<const ClaimResult> results) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_reason;
  for (const ClaimResult& result : results) {
    if (result.verdict.is_tested()) continue;
    auto found =
        std::ranges::find(by_reason, result.verdict.reason, [](const auto& r) { return r.first; });
    if (found == by_reason.end()) found = by_reason.insert(found, {result.verdict.reason, {}});
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
      return each.endpoint == endpoint &&
             (each.verdict.is_decided() || each.verdict.finding == Finding::inconclusive);
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
        "{} of them {} not stated before the runs, which know another claims file or none: what "
        "they say is exploratory.",
        changed, changed == 1 ? "was" : "were"));
  }
  if (count(Rank::primary) > 0) {
    notes.push_back(fmt::format(
        "p values of primary claims are corrected jointly by Holm over {}, those of secondary ones "
        "count once their primary one is decided; level {:g}.",
        std::ranges::count(results, Rank::primary, &ClaimResult::endpoint), file.alpha));
  }
  if (count(Rank::exploratory) > 0) {
    notes.push_back(
        fmt::format("Exploratory verdicts pass Benjamini and Hochberg's correction in their family "
                    "at {:g}.",
                    kFalseDiscoveryRate));
  }
  notes.push_back(interval_note(results));
  for (const std::string& note : margin_notes(file, results)) notes.push_back(note);
  return notes;
}

system::Table verdict_table(std::span<const ClaimResult> results) {
  system::Table table;
  for (const char* head : {"claim", "source", "endpoint", "measured", "verdict"}) {
    table.columns.push_back({"", head, true});
  }
  for (const ClaimResult& result : results) {
    if (!result.verdict.is_tested()) continue;
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
    if (!result.verdict.is_tested()) continue;
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
    const stats::PairedDifference& paired = found.paired;
    std::vector<std::string> fields{claim.id,
                                    claim.family,
                                    std::string(to_string(claim.endpoint)),
                                    std::string(to_string(result.endpoint)),
                                    claim.metric->name,
                                    std::string(to_string(claim.metric->scale)),
                                    found.arm,
                                    found.reference,
                                    std::string(to_string(claim.over))};
    const auto add = [&fields](double value) { fields.push_back(system::csv_number(value)); };
    for (const double value :
         {found.arm_mean, found.reference_mean, paired.difference.mean,
          paired.difference.half_width, paired.degrees, claim.margin_on_axis()}) {
      add(value);
    }
    fields.push_back(fmt::to_string(found.seeds.size()));
    const bool difference = finds_differences(questions_of(claim.expect).own);
    const std::pair own(result.p, result.p_corrected),
        other(result.p_other, result.p_other_corrected);
    for (const auto& [p, corrected] : {difference ? own : other, difference ? other : own}) {
      add(p);
      add(corrected);
    }
    add(result.p_signs);
    fields.emplace_back(to_string(result.verdict.finding));
    fields.emplace_back(found.seeds.empty()     ? ""
                        : found.group_count > 0 ? "seeds and held-out text"
                                                : "seeds");
    fields.push_back(result.verdict.reason);
    csv += system::csv_line(fields);
  }
  return csv;
}

}  // namespace difftape::study
