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

}  // namespace difftape::study
