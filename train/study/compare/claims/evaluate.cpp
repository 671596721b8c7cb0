#include "train/study/compare/claims/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace difftape::study {

namespace {

/// Two-sided, of the corrected p value.
constexpr double kSignificance = 0.05;

/// Whether equal learning rates are each arm's best one, so that both tests of the loss are the
/// same.
bool is_one_lr(const ArmPair& pair) {
  return pair.arm->conditions.size() == 1 && pair.against->conditions.size() == 1;
}

TestResult measure(const Study& study, const ClaimTest& test) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  TestResult result{&test, "", "", {{}, kNaN, kNaN, kNaN, "", "", ""}, kNaN, Verdict::not_tested,
                    ""};
  const ArmPair pair = find_pair(study, test.arm, test.against);
  result.reason = pair.reason;
  if (!result.reason.empty()) return result;
  result.arm = pair.arm->name;
  result.against = pair.against->name;
  result.comparison = compare_arms(*pair.arm, *pair.against, *test.quantity);
  result.reason = result.comparison.reason;
  const Index seeds = result.comparison.paired.pairs;
  if (!result.reason.empty()) return result;
  if (seeds == 1) {
    result.reason = "one seed: no interval";
  } else if (seeds < kSeedsForVerdict) {
    result.reason = fmt::format("{} seeds, need {}", seeds, kSeedsForVerdict);
  } else if (test.quantity == &quantity("val_loss") && is_one_lr(pair)) {
    result.reason = "one learning rate: the same test as at each arm's best";
  }
  return result;
}

Verdict verdict_of(const TestResult& result) {
  if (!result.reason.empty()) return Verdict::not_tested;
  const double difference = result.comparison.paired.difference.mean;
  const bool detected =
      result.adjusted_p < kSignificance && std::abs(difference) > result.comparison.noise_floor;
  if (!detected) return Verdict::not_significant;
  const Expected found = difference < 0 ? Expected::lower : Expected::higher;
  const Expected expected =
      result.test->expected == Expected::not_higher ? Expected::lower : result.test->expected;
  return found == expected ? Verdict::supported : Verdict::not_supported;
}

void correct(std::vector<ClaimResult>& results) {
  std::vector<double> p;
  for (const ClaimResult& result : results) {
    for (const TestResult& test : result.tests) {
      const bool counts = test.reason.empty();
      p.push_back(counts ? test.comparison.paired.p : std::numeric_limits<double>::quiet_NaN());
    }
  }
  const std::vector<double> adjusted = stats::holm(p);
  std::size_t i = 0;
  for (ClaimResult& result : results) {
    for (TestResult& test : result.tests) test.adjusted_p = adjusted[i++];
  }
}

void finalize(ClaimResult& result) {
  bool contradicted = false, supported = true, differs = false;
  for (const TestResult& test : result.tests) {
    if (test.verdict == Verdict::not_tested && result.reason.empty()) result.reason = test.reason;
    contradicted = contradicted || test.verdict == Verdict::not_supported;
    if (test.test->expected == Expected::equal) continue;
    differs = true;
    supported = supported && test.verdict == Verdict::supported;
  }
  result.verdict = !result.reason.empty() ? Verdict::not_tested
                   : contradicted         ? Verdict::not_supported
                   : differs && supported ? Verdict::supported
                                          : Verdict::not_significant;
}

}  // namespace

std::vector<ClaimResult> evaluate(const Study& all) {
  const Study study = all.of_task(all.arms[all.baseline].task);
  std::vector<ClaimResult> results;
  for (const Claim& claim : claims()) {
    ClaimResult result{&claim, {}, Verdict::not_tested, ""};
    for (const ClaimTest& test : claim.tests) result.tests.push_back(measure(study, test));
    results.push_back(std::move(result));
  }
  correct(results);
  for (ClaimResult& result : results) {
    for (TestResult& test : result.tests) test.verdict = verdict_of(test);
    finalize(result);
  }
  return results;
}

}  // namespace difftape::study
