#pragma once
// What the runs of a study say, in one sentence.

#include <string>

#include "train/study/compare/study.h"

namespace difftape::study {

/// Which arm reached the lowest validation loss, each at its best learning rate, how far below the
/// baseline (the baseline itself: below the next arm), and with which evidence: the 95 % interval
/// of the difference paired by seed, not corrected for having chosen arm and learning rate. Of
/// several tasks a sentence each. Without a newline.
std::string answer(const Study& study);

}  // namespace difftape::study
