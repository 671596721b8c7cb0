#pragma once
// Measures matrix multiplication of training size on this machine.

#include "core/gemm.h"

namespace difftape::app {

struct MeasuredGemm {
  double flops = 0;  ///< per second, best of several
  double error = 0;  ///< root mean square, relative to the root mean square of the results
};

MeasuredGemm measure_gemm(Precision precision);

/// Returns whether the automatic engine computes the bits of the portable one, which must be
/// supported.
bool has_portable_bits();

}  // namespace difftape::app
