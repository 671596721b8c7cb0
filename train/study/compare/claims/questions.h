#pragma once
// What is asked of the numbers of a claim: the tests that answer it.

#include "train/stats/interval.h"
#include "train/study/compare/claims/claims_file.h"

namespace difftape::study {

/// The p value of a question about a difference; of some it depends on no margin.
using Test = double (*)(const stats::PairedDifference&, double margin);

/// What is asked of a claim, and what else its numbers can show.
struct Questions {
  Test own, other;
};
Questions questions_of(Expect expect);

bool needs_margin(Test test);
/// Whether a test finds differences, rather than their absence.
bool finds_differences(Test test);

}  // namespace difftape::study
