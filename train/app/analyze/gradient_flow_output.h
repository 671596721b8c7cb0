#pragma once
// What `analyze gradient-flow` measured, for people and for programs.

#include <filesystem>

#include "train/app/analyze/gradient_flow.h"

namespace difftape::app {

/// What was measured, in words; a table with a row for each layer and group; for each kind and step
/// how far the ratios of single layers spread. With several seeds, means with 95 % t-intervals.
std::string describe_gradient_flow(const GradientFlow& flow);

/// /steps, /seeds, and for each kind /loss/<kind>, /norm/<kind>/<layer>/<group> and, but for the
/// baseline, /ratio/<kind>/<layer>/<group>, each (seeds, steps); <layer> is a number, "all" or
/// "outside". Attributes `config_yaml` and `baseline`. Throws OutputError.
void write_gradient_flow(const std::filesystem::path& path, const GradientFlow& flow,
                         const std::string& config_yaml);

}  // namespace difftape::app
