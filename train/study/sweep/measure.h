#pragma once
// How long a step takes when the runs of a sweep share the machine, measured by taking some.

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>

#include "train/study/sweep/cores.h"
#include "train/study/sweep/job.h"

namespace difftape::study {

/// Times steps of `config` for about `seconds` in every worker of the layout at once; nothing is
/// written. The mean over the workers. Nothing if they fail, as a run of this configuration then
/// will, or take more than `limit` seconds in all.
std::optional<StepTime> measure_step(const run::Config& config, const Layout& layout,
                                     double seconds, double limit, const std::string& program);

/// How `left` runs share the machine, the first of which is `config`. `jobs` > 0 decides itself;
/// otherwise the faster of one process with all threads and one process a core, measured within
/// some seconds and printed with both rates; without a measurement if one core or one run is left.
/// OMP_NUM_THREADS bounds the threads of a process, and without `jobs` the cores of all.
Layout choose_layout(const run::Config& config, std::size_t left, int jobs,
                     const std::string& program, std::ostream& console);

}  // namespace difftape::study
