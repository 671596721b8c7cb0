#pragma once
// The published claims about differential attention, judged by the runs of a study.

#include <span>
#include <string>
#include <vector>

#include "train/study/compare/claims/comparison.h"
#include "train/study/compare/claims/quantities.h"
#include "train/study/compare/claims/roles.h"
#include "train/study/compare/study.h"

namespace difftape::study {

/// What a claim says of an arm beside another. `equal` is never proven: a difference can only
/// contradict it. `not_higher` is contradicted by a higher number alone; a lower one supports it.
enum class Expected { lower, higher, equal, not_higher };

struct ClaimTest {
  const Quantity* quantity;
  ArmRole arm, against;
  Expected expected;
};

struct Claim {
  const char* id;
  const char* sentence;
  const char* source;
  std::vector<ClaimTest> tests;
  const char* if_supported = "";      ///< said behind the verdict, where the claim is two against
  const char* if_not_supported = "";  ///< each other
  /// The published difference, if the claim has one: measured_words says whether the interval holds
  /// some of it. The verdict is about the direction alone.
  double published_low = 0, published_high = 0;
};
/// To add one: an entry here, and for what is not measured yet, a Quantity.
std::span<const Claim> claims();

enum class Verdict { supported, not_supported, no_difference, not_tested };
/// "supported", "not supported", "no difference detected", "not tested".
const char* verdict_words(Verdict verdict);

/// Seeds that a verdict needs.
constexpr Index kSeedsForVerdict = 3;

/// A test with its numbers. A difference counts if its p value, corrected by Holm over all tests
/// that have one from at least three seeds, is below 0.05 and it exceeds the noise floor. In the
/// direction expected it supports, against it contradicts; anything else is no difference detected.
struct TestResult {
  const ClaimTest* test;
  std::string arm, against;  ///< names of the arms; empty if there are none
  Comparison comparison;
  double adjusted_p;
  Verdict verdict;
  std::string reason;  ///< why it is not tested
};

/// Supported if every test that expects a difference supports it; not supported if one contradicts;
/// not tested, with the first reason, if one is not tested. A claim that expects no more than
/// the other arm has is not contradicted, and said to be so, where no difference is detected.
struct Finding {
  const Claim* claim;
  std::vector<TestResult> tests;
  Verdict verdict;
  std::string reason;
};

/// One finding a claim, in the order of claims().
std::vector<Finding> judge(const Study& study);

/// The numbers of a finding in words; what is missing where there are none.
std::string measured_words(const Finding& finding);
/// The verdict with its reason.
std::string verdict_text(const Finding& finding);

/// Findings for the terminal: those with a verdict each in a paragraph, the others by reason.
std::string findings_text(std::span<const Finding> findings, std::size_t width);

/// verdicts.csv: one line a test, numbers with all digits, empty where there is none. Differences
/// and noise floors of ratios (scale "log") are those of logarithms.
std::string verdicts_csv(std::span<const Finding> findings);
/// Its first line.
extern const char* const kVerdictsHeader;

}  // namespace difftape::study
