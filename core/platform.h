#pragma once
// The sources and tools that this program was built from, and the measured peak of the machine.

#include <string>

namespace difftape {

struct BuildInfo {
  std::string version;     ///< of difftape, "0.1.0"
  std::string commit;      ///< of the sources, with "-dirty" if they were changed; may be "unknown"
  std::string compiler;    ///< "GCC 12.2.0"
  std::string build_type;  ///< "Release"
  std::string precision;   ///< "f32" or "f64"
  std::string vectors;     ///< widest vector instructions compiled for, "AVX512"
};
BuildInfo build_info();

/// Multiply-add rate of the widest vector unit in FLOP/s over all threads (a multiply-add counts
/// 2), in `real`. Runs for about `seconds` and takes the best of several windows.
double measure_fma_peak(double seconds = 0.03);

}  // namespace difftape
