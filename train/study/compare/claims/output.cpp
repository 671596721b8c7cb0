#include "train/study/compare/claims/output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "train/study/compare/tables.h"
#include "train/system/text_table.h"

namespace difftape::study {

namespace {

std::string number(double value, const Quantity& quantity) {
  return quantity.scale == Scale::ratio ? fmt::format("{:.{}g}", value, quantity.claims.digits)
                                        : fmt::format("{:.{}f}", value, quantity.claims.digits);
}

std::string difference_words(const TestResult& test) {
  const Quantity& quantity = *test.test->quantity;
  const stats::PairedDifference& paired = test.comparison.paired;
  const stats::Interval& difference = paired.difference;
  if (quantity.scale == Scale::ratio) {
    const std::string ratio = fmt::format("ratio {:.3g}", std::exp(difference.mean));
    return paired.pairs == 1 ? ratio
                             : fmt::format("{} ({:.3g} to {:.3g})", ratio,
                                           std::exp(difference.low()), std::exp(difference.high()));
  }
  const std::string mean =
      fmt::format("difference {:+.{}f}", difference.mean, quantity.claims.digits);
  return paired.pairs == 1 ? mean
                           : fmt::format("{} +- {}", mean, number(difference.half_width, quantity));
}

std::string p_words(const TestResult& test) {
  const stats::PairedDifference& paired = test.comparison.paired;
  if (paired.pairs == 1) return "";
  const bool ratio = test.test->quantity->scale == Scale::ratio;
  const double floor = test.comparison.noise_floor;
  const std::string corrected =
      std::isnan(test.adjusted_p) ? "" : fmt::format(", corrected {:.2g}", test.adjusted_p);
  return fmt::format(", p {:.2g}{}, noise floor {}", paired.p, corrected,
                     ratio ? fmt::format("a factor of {:.3g}", std::exp(floor))
                           : number(floor, *test.test->quantity));
}

std::string test_words(const TestResult& test) {
  const Quantity& quantity = *test.test->quantity;
  const Comparison& comparison = test.comparison;
  if (comparison.paired.pairs == 0)
    return fmt::format("{}: {}", quantity.claims.label, test.reason);
  return fmt::format("{}: {} {}, {} {}; {}; {} {} {}{}{}", quantity.claims.label, test.arm,
                     number(comparison.arm, quantity), test.against,
                     number(comparison.against, quantity), difference_words(test),
                     comparison.paired.pairs, comparison.paired.pairs == 1 ? "seed" : "seeds",
                     comparison.lrs, p_words(test), comparison.diverged);
}

std::string published_words(const ClaimResult& result) {
  const Claim& claim = *result.claim;
  const stats::Interval& difference = result.tests.front().comparison.paired.difference;
  if (claim.published_low == claim.published_high || std::isnan(difference.half_width)) return "";
  const bool holds =
      difference.low() <= claim.published_high && difference.high() >= claim.published_low;
  return fmt::format("; the published {:.2f} to {:.2f} {} the interval", claim.published_high,
                     claim.published_low, holds ? "meets" : "lies outside");
}

bool has_numbers(const ClaimResult& result) {
  return std::any_of(result.tests.begin(), result.tests.end(),
                     [](const TestResult& test) { return test.comparison.paired.pairs > 0; });
}

constexpr const char* kVerdictNote =
    "A difference is detected if p, corrected by Holm over all tests, is below 0.05 and it exceeds "
    "the noise floor, the standard deviation between seeds of the arm compared with. A seed is "
    "averaged over learning rates before seeds are compared.";

}  // namespace

const char* const kVerdictsHeader =
    "claim,quantity,scale,arm,against,arm_mean,against_mean,difference,half_width,seeds,p,"
    "p_corrected,noise_floor,test_verdict,verdict,reason";

std::string measured_words(const ClaimResult& result) {
  if (!has_numbers(result)) return "-";
  std::vector<std::string> words;
  for (const TestResult& test : result.tests) words.push_back(test_words(test));
  return fmt::format("{}{}", fmt::join(words, ". "), published_words(result));
}

std::string verdict_text(const ClaimResult& result) {
  const Claim& claim = *result.claim;
  const bool no_more = std::any_of(claim.tests.begin(), claim.tests.end(), [](const ClaimTest& t) {
    return t.expected == Expected::not_higher;
  });
  if (result.verdict == Verdict::not_significant && no_more)
    return fmt::format("{}: not contradicted", to_string(result.verdict));
  const std::string_view more = result.verdict == Verdict::not_tested      ? result.reason
                                : result.verdict == Verdict::supported     ? claim.if_supported
                                : result.verdict == Verdict::not_supported ? claim.if_not_supported
                                                                           : std::string_view();
  return fmt::format("{}{}{}", to_string(result.verdict), more.empty() ? "" : ": ", more);
}

system::Table verdict_table(std::span<const ClaimResult> results) {
  system::Table table;
  table.columns = {
      {"", "claim", true}, {"", "source", true}, {"", "measured", true}, {"", "verdict", true}};
  for (const ClaimResult& result : results) {
    table.rows.push_back({result.claim->sentence, result.claim->source, measured_words(result),
                          verdict_text(result)});
  }
  return table;
}

std::string claims_text(std::span<const ClaimResult> results, std::size_t width) {
  std::string text;
  std::vector<std::string> reasons;
  for (const ClaimResult& result : results) {
    if (result.verdict != Verdict::not_tested) {
      const Claim& claim = *result.claim;
      text += system::wrapped(fmt::format("{} ({}).", claim.sentence, claim.source), width, "");
      text += system::wrapped(measured_words(result) + ".", width, "    ");
      text += system::wrapped("-> " + verdict_text(result), width, "    ");
    } else if (std::find(reasons.begin(), reasons.end(), result.reason) == reasons.end()) {
      reasons.push_back(result.reason);
    }
  }
  for (const std::string& reason : reasons) {
    std::vector<std::string> ids;
    for (const ClaimResult& result : results) {
      if (result.reason == reason) ids.emplace_back(result.claim->id);
    }
    text +=
        system::wrapped(fmt::format("not tested, {}: {}", reason, fmt::join(ids, ", ")), width, "");
  }
  return text;
}

std::string study_text(const Study& study, std::size_t width) {
  if (study.arms.size() < 2) return tables_text(study, width);
  const std::vector<ClaimResult> results = evaluate(study);
  const bool tested = std::any_of(results.begin(), results.end(), [](const ClaimResult& result) {
    return result.verdict != Verdict::not_tested;
  });
  return tables_text(study, width) + '\n' + claims_text(results, width) +
         (tested ? system::wrapped(kVerdictNote, width, "") : "");
}

std::string verdicts_csv(std::span<const ClaimResult> results) {
  std::string csv = fmt::format("{}\n", kVerdictsHeader);
  for (const ClaimResult& result : results) {
    for (const TestResult& test : result.tests) {
      const Quantity& quantity = *test.test->quantity;
      const stats::PairedDifference& paired = test.comparison.paired;
      std::vector<std::string> fields{result.claim->id, quantity.claims.label,
                                      quantity.scale == Scale::ratio ? "log" : "linear", test.arm,
                                      test.against};
      for (const double value : {test.comparison.arm, test.comparison.against,
                                 paired.difference.mean, paired.difference.half_width}) {
        fields.push_back(system::csv_number(value));
      }
      fields.push_back(fmt::to_string(paired.pairs));
      for (const double value : {paired.p, test.adjusted_p, test.comparison.noise_floor}) {
        fields.push_back(system::csv_number(value));
      }
      fields.insert(fields.end(), {std::string(to_string(test.verdict)),
                                   std::string(to_string(result.verdict)), test.reason});
      csv += system::csv_line(fields);
    }
  }
  return csv;
}

}  // namespace difftape::study
