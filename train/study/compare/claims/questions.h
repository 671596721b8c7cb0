#pragma once
// What is asked of the numbers of a claim: the test that answers it, of pairs that may be bounds,
// at once or at looks.

#include "train/stats/interval.h"
#include "train/study/compare/claims/claims_file.h"
#include "train/study/compare/claims/measure.h"

namespace difftape::study {

/// The p value of a question about paired differences; of some it depends on no margin.
using Test = double (*)(const stats::PairedDifference&, double margin);

/// What is asked of a claim, and what else its numbers can show.
struct Questions {
  Test own, other;
};
Questions questions_of(Expect expect);

bool needs_margin(Test test);
/// Whether a test finds differences: such a one may be looked at early.
bool finds_differences(Test test);

/// A p value, and whether the difference that it is of is below 0. No p where the bound leaves
/// open what the test finds.
struct Tested {
  double p = kNone;
  bool lower = false, left_out = false;
};

/// Of the first pairs. Of a bound the spread is not known: then at least what signs alone say.
Tested of_pairs(Test test, double margin, const Measured& measured, std::size_t pairs);
/// What looks at 4, 8 and 12 pairs say: the least p value of those reached, each at its own level.
Tested look(Test test, double margin, const Measured& measured);

}  // namespace difftape::study
