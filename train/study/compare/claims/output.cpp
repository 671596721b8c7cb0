#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "train/study/compare/claims/claims.h"
#include "train/system/csv.h"
#include "train/system/text_table.h"

namespace difftape::study {

namespace {

std::string number(double value, const Quantity& quantity) {
  return quantity.ratio ? fmt::format("{:.{}g}", value, quantity.digits)
                        : fmt::format("{:.{}f}", value, quantity.digits);
}

std::string difference_words(const TestResult& test) {
  const Quantity& quantity = *test.test->quantity;
  const stats::PairedDifference& paired = test.comparison.paired;
  const stats::Interval& difference = paired.difference;
  if (quantity.ratio) {
    const std::string ratio = fmt::format("ratio {:.3g}", std::exp(difference.mean));
    return paired.pairs == 1 ? ratio
                             : fmt::format("{} ({:.3g} to {:.3g})", ratio,
                                           std::exp(difference.low()), std::exp(difference.high()));
  }
  const std::string mean = fmt::format("difference {:+.{}f}", difference.mean, quantity.digits);
  return paired.pairs == 1 ? mean
                           : fmt::format("{} +- {}", mean, number(difference.half_width, quantity));
}

std::string p_words(const TestResult& test) {
  const stats::PairedDifference& paired = test.comparison.paired;
  if (paired.pairs == 1) return "";
  const bool ratio = test.test->quantity->ratio;
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
  if (comparison.paired.pairs == 0) return fmt::format("{}: {}", quantity.name, test.reason);
  return fmt::format("{}: {} {}, {} {}; {}; {} {} {}{}{}", quantity.name, test.arm,
                     number(comparison.arm, quantity), test.against,
                     number(comparison.against, quantity), difference_words(test),
                     comparison.paired.pairs, comparison.paired.pairs == 1 ? "seed" : "seeds",
                     comparison.rates, p_words(test), comparison.diverged);
}

std::string published_words(const Finding& finding) {
  const Claim& claim = *finding.claim;
  const stats::Interval& difference = finding.tests.front().comparison.paired.difference;
  if (claim.published_low == claim.published_high || std::isnan(difference.half_width)) return "";
  const bool holds =
      difference.low() <= claim.published_high && difference.high() >= claim.published_low;
  return fmt::format("; the published {:.2f} to {:.2f} {} the interval", claim.published_high,
                     claim.published_low, holds ? "meets" : "lies outside");
}

bool has_numbers(const Finding& finding) {
  return std::any_of(finding.tests.begin(), finding.tests.end(),
                     [](const TestResult& test) { return test.comparison.paired.pairs > 0; });
}

std::string exact(double value) { return std::isnan(value) ? "" : fmt::to_string(value); }

}  // namespace

const char* const kVerdictsHeader =
    "claim,quantity,scale,arm,against,arm_mean,against_mean,difference,half_width,seeds,p,"
    "p_corrected,noise_floor,test_verdict,verdict,reason";

std::string measured_words(const Finding& finding) {
  if (!has_numbers(finding)) return "-";
  std::vector<std::string> words;
  for (const TestResult& test : finding.tests) words.push_back(test_words(test));
  return fmt::format("{}{}", fmt::join(words, ". "), published_words(finding));
}

std::string verdict_text(const Finding& finding) {
  const Claim& claim = *finding.claim;
  const bool no_more = std::any_of(claim.tests.begin(), claim.tests.end(), [](const ClaimTest& t) {
    return t.expected == Expected::not_higher;
  });
  if (finding.verdict == Verdict::no_difference && no_more)
    return fmt::format("{}: not contradicted", verdict_words(finding.verdict));
  const std::string_view more = finding.verdict == Verdict::not_tested      ? finding.reason
                                : finding.verdict == Verdict::supported     ? claim.if_supported
                                : finding.verdict == Verdict::not_supported ? claim.if_not_supported
                                                                            : std::string_view();
  return fmt::format("{}{}{}", verdict_words(finding.verdict), more.empty() ? "" : ": ", more);
}

system::Table verdict_table(const Study& study) {
  system::Table table;
  table.columns = {
      {"", "claim", true}, {"", "source", true}, {"", "measured", true}, {"", "verdict", true}};
  for (const Finding& finding : judge(study)) {
    table.rows.push_back({finding.claim->sentence, finding.claim->source, measured_words(finding),
                          verdict_text(finding)});
  }
  return table;
}

std::string findings_text(std::span<const Finding> findings, std::size_t width) {
  std::string text;
  std::vector<std::string> reasons;
  for (const Finding& finding : findings) {
    if (finding.verdict != Verdict::not_tested) {
      const Claim& claim = *finding.claim;
      text += system::wrapped(fmt::format("{} ({}).", claim.sentence, claim.source), width, "");
      text += system::wrapped(measured_words(finding) + ".", width, "    ");
      text += system::wrapped("-> " + verdict_text(finding), width, "    ");
    } else if (std::find(reasons.begin(), reasons.end(), finding.reason) == reasons.end()) {
      reasons.push_back(finding.reason);
    }
  }
  for (const std::string& reason : reasons) {
    std::vector<std::string> ids;
    for (const Finding& finding : findings) {
      if (finding.reason == reason) ids.emplace_back(finding.claim->id);
    }
    text +=
        system::wrapped(fmt::format("not tested, {}: {}", reason, fmt::join(ids, ", ")), width, "");
  }
  return text;
}

std::string verdicts_csv(std::span<const Finding> findings) {
  std::string csv = fmt::format("{}\n", kVerdictsHeader);
  for (const Finding& finding : findings) {
    for (const TestResult& test : finding.tests) {
      const Comparison& comparison = test.comparison;
      const stats::PairedDifference& paired = comparison.paired;
      csv += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", finding.claim->id,
                         system::csv_field(test.test->quantity->name),
                         test.test->quantity->ratio ? "log" : "linear", system::csv_field(test.arm),
                         system::csv_field(test.against), exact(comparison.arm),
                         exact(comparison.against), exact(paired.difference.mean),
                         exact(paired.difference.half_width), paired.pairs, exact(paired.p),
                         exact(test.adjusted_p), exact(comparison.noise_floor),
                         verdict_words(test.verdict), verdict_words(finding.verdict),
                         system::csv_field(test.reason));
    }
  }
  return csv;
}

}  // namespace difftape::study
