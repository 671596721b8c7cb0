#pragma once
// Matrix products of training size, measured on this machine.

#include "core/gemm.h"

namespace difftape::app {

struct MeasuredGemm {
  double flops = 0;  ///< a second, best of several
  double error = 0;  ///< root mean square, of that of the results
};

MeasuredGemm measure_gemm(Precision precision);

/// Whether the fast engine gives the bits of the portable one, which this program must have.
bool has_portable_bits();

}  // namespace difftape::app
