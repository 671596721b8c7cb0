#include "train/stats/joint_holm.h"

#include <algorithm>
#include <cmath>

namespace difftape::stats {

namespace {

/// One question of a claim that has a p value.
struct Test {
  double p;
  std::size_t claim;
  bool own;
};

std::vector<Test> ascending_tests(std::span<const TwoQuestions> claims) {
  std::vector<Test> tests;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (!std::isnan(claims[i].own)) tests.push_back({claims[i].own, i, true});
    const double other = claims[i].other.value_or(kNaN);
    if (!std::isnan(other)) tests.push_back({other, i, false});
  }
  std::ranges::stable_sort(tests, {}, &Test::p);
  return tests;
}

/// How many open questions must be rejected before the claim counts half; -1: it never does.
int questions_before_credit(const TwoQuestions& claim) {
  if (claim.complementary) return -1;
  return claim.other ? 2 : 1;
}

}  // namespace

std::vector<TwoCorrected> joint_holm(std::span<const TwoQuestions> claims) {
  std::vector<TwoCorrected> corrected(claims.size());
  std::vector<int> open;
  for (const TwoQuestions& claim : claims) open.push_back(questions_before_credit(claim));
  auto count = static_cast<double>(claims.size());  // of the nulls that can be true
  double largest = 0;
  for (const auto& [p, claim, own] : ascending_tests(claims)) {
    largest = std::max(largest, std::min(1.0, p * count));
    TwoCorrected& of_claim = corrected[claim];
    (own ? of_claim.own : of_claim.other) = largest;
    (own ? of_claim.own_factor : of_claim.other_factor) = count;
    if (--open[claim] == 0) count -= 0.5;
  }
  return corrected;
}

}  // namespace difftape::stats
