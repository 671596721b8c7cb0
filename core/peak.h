#pragma once
// What this machine can do at best, measured.

namespace difftape {

/// Multiply-add rate of the widest vector unit in FLOP/s over all threads (a multiply-add counts
/// 2), in `real`. Runs for about `seconds` and takes the best of several windows.
double measure_fma_peak(double seconds = 0.03);

}  // namespace difftape
