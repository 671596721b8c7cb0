#pragma once
// A step with all that is measured at it, and how that is logged: what a run does, and what repeats
// one.

#include "train/run/loop/step.h"
#include "train/run/records/metrics.h"

namespace difftape::run {

/// Takes the next step, and the validation and the diagnostics that are due after it.
Step take_logged_step(TrainState& state);

/// What is logged of it, in the order of metrics.jsonl; `speed` goes among them.
Metrics metrics_of(const TrainState& state, const Step& step, const Metrics& speed = {});

/// "a 1.2345, b 0.9876": the validation loss of each domain; empty if they are not told apart.
std::string text_of_domains(const Step& step);

}  // namespace difftape::run
