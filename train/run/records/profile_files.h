#pragma once
// A profile as files.

#include <span>
#include <string>

#include "core/profile.h"

namespace difftape::run {

/// The Trace Event Format of Chrome, which Perfetto and chrome://tracing open: one complete event
/// ("ph": "X") for each, in microseconds, its category in "cat", its layer or step in "args". The
/// order is that of `events`.
std::string trace_json(std::span<const profile::Event> events);

/// The table by op, in milliseconds a step and percent of the time, which add up to the step.
/// `step_tokens` and `step_flops` are those of one step, for the rates; at least one step.
std::string profile_text(const profile::Table& table, double step_tokens, double step_flops);

}  // namespace difftape::run
