#include "train/study/compare/claims/questions.h"

#include <algorithm>
#include <cmath>

#include "train/stats/decision.h"

namespace difftape::study {

namespace {

/// Two-sided, of a difference from 0.
double differs_p(const stats::PairedDifference& paired, double) { return paired.p; }

/// Two-sided, of a difference beyond the margin.
double beyond_p(const stats::PairedDifference& paired, double margin) {
  stats::PairedDifference size = paired;
  size.difference.mean = std::abs(paired.difference.mean);
  return std::min(1.0, 2 * stats::upper_p(size, margin));
}

/// One-sided, of a difference above the margin.
double above_p(const stats::PairedDifference& paired, double margin) {
  return stats::upper_p(paired, margin);
}

/// One-sided, of a difference below the margin.
double not_above_p(const stats::PairedDifference& paired, double margin) {
  stats::PairedDifference turned = paired;
  turned.difference.mean = -paired.difference.mean;
  return stats::upper_p(turned, -margin);
}

/// Whether what a test finds of a mean below or above 0 holds wherever the bound lets it be.
bool holds(Test test, Bound bound, bool lower) {
  if (test == stats::equivalence_p) return bound.exact();
  if (test == not_above_p) return !bound.may_be_higher;
  if (test == above_p) return !bound.may_be_lower;
  return lower ? !bound.may_be_higher : !bound.may_be_lower;
}

/// The difference that a test finds a mean to be beyond.
double beyond_what(Test test, double margin, bool lower) {
  if (test == differs_p) return 0;
  return test == beyond_p && lower ? -margin : margin;
}

}  // namespace

Questions questions_of(Expect expect) {
  switch (expect) {
    case Expect::equivalent:
      return {stats::equivalence_p, beyond_p};
    case Expect::not_higher:
      return {not_above_p, above_p};
    case Expect::lower:
    case Expect::higher:
      break;
  }
  return {differs_p, stats::equivalence_p};
}

bool needs_margin(Test test) { return test != differs_p; }
bool finds_differences(Test test) {
  return test == differs_p || test == beyond_p || test == above_p;
}

Tested of_pairs(Test test, double margin, const Measured& measured, std::size_t pairs) {
  const auto a = std::span(measured.a).first(pairs), b = std::span(measured.b).first(pairs);
  const auto paired = stats::paired_difference(a, b);
  const Bound bound = measured.bound(pairs);
  Tested tested{.lower = paired.difference.mean < 0};
  tested.left_out = !holds(test, bound, tested.lower);
  if (tested.left_out) return tested;
  tested.p = test(paired, margin);
  if (bound.exact()) return tested;
  std::vector<double> beyond;
  for (std::size_t i = 0; i < pairs; ++i)
    beyond.push_back(a[i] - b[i] - beyond_what(test, margin, tested.lower));
  tested.p = std::max(tested.p, stats::sign_flip_p(beyond));
  return tested;
}

Tested look(Test test, double margin, const Measured& measured) {
  Tested least;
  for (const stats::Look& look : stats::kLooks) {
    const auto pairs = static_cast<std::size_t>(look.pairs);
    if (pairs > measured.a.size()) break;
    Tested tested = of_pairs(test, margin, measured, pairs);
    tested.p = stats::sequential_p(tested.p, look.pairs);
    if (std::isnan(least.p)) least.left_out = tested.left_out;
    if (!std::isnan(tested.p) && !(tested.p >= least.p)) least = tested;
  }
  return least;
}

}  // namespace difftape::study
