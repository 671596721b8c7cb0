#pragma once
// What the runs of a study say, in one sentence; and with their tables as text for a terminal.

#include <cstddef>
#include <string>

#include "train/study/compare/study.h"

namespace difftape::study {

/// Which arm reached the lowest validation loss, how far below the baseline (the baseline itself:
/// below the next arm), and with which evidence: the 95 % interval of the difference paired by
/// seed, not corrected for having chosen arm and learning rate. Each arm is taken at its best
/// learning rate among those at which no complete run diverged; one that has no
/// such rate is left out, and named as left out. Of several tasks a line each, shorter: without
/// the learning rates, the interval in brackets (tasks_note says so). No newline at the end.
std::string answer(const Study& study);

/// What is to know where the runs are of several tasks; empty if they are of one.
std::string tasks_note(const Study& study);

/// The answer and the tables as text for a terminal of `width` columns, with what is to know about
/// them. Where each arm is one run, that of single runs.
std::string tables_text(const Study& study, std::size_t width);

}  // namespace difftape::study
