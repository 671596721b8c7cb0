#pragma once
// The claims tested by the runs of a study.

#include <span>
#include <string>
#include <vector>

#include "core/names.h"
#include "train/study/compare/claims/claims.h"
#include "train/study/compare/claims/comparison.h"
#include "train/study/compare/study.h"

namespace difftape::study {

enum class Verdict { supported, not_supported, not_significant, not_tested };

}  // namespace difftape::study

namespace difftape {

template <>
inline constexpr auto kNames<study::Verdict> = std::to_array<Named<study::Verdict>>(
    {{"supported", study::Verdict::supported},
     {"not supported", study::Verdict::not_supported},
     {"no difference detected", study::Verdict::not_significant},
     {"not tested", study::Verdict::not_tested}});

}  // namespace difftape

namespace difftape::study {

/// Seeds that a verdict needs.
constexpr Index kSeedsForVerdict = 3;

/// A test with its numbers. A difference counts if its p value, corrected by Holm over all tests
/// that have one from at least three seeds, is below 0.05 and it exceeds the noise floor. In the
/// direction expected it supports, against it contradicts; anything else is not significant.
struct TestResult {
  const ClaimTest* test;
  std::string arm, against;  ///< names of the arms; empty if there are none
  Comparison comparison;
  double adjusted_p;
  Verdict verdict;
  std::string reason;  ///< why it is not tested
};

/// Supported if every test that expects a difference supports it; not supported if one contradicts;
/// not tested, with the first reason, if one is not tested.
struct ClaimResult {
  const Claim* claim;
  std::vector<TestResult> tests;
  Verdict verdict;
  std::string reason;
};

/// One result a claim, in the order of claims(), by the runs of the baseline's task.
std::vector<ClaimResult> evaluate(const Study& all);

}  // namespace difftape::study
