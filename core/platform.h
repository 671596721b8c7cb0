#pragma once
// The sources and tools of this build, and the measured peak of the machine.

#include <string>
#include <vector>

namespace difftape {

struct BuildInfo {
  std::string version;     ///< "0.1.0"
  std::string commit;      ///< with "-dirty" if sources were changed; may be "unknown"
  std::string compiler;    ///< "GCC 12.2.0"
  std::string build_type;  ///< "Release"
  std::string precision;   ///< "f32" or "f64"
  std::string vectors;     ///< widest vector instructions in use, "AVX512"
  std::string level;       ///< x86-64 level of the library, "x86-64-v3"; "" in a native build
};
BuildInfo build_info();

/// Returns one sentence on why the loader chose a library for older processors than this one, or
/// "".
std::string slower_level_reason();

/// Code that only some processors or builds run.
struct CodePath {
  std::string name;     ///< "AVX512-BF16 pairs"
  std::string missing;  ///< one sentence on why it does not run here, or ""
};
std::vector<CodePath> code_paths();

/// Measures the multiply-add rate of `real` in FLOP/s over all threads, where a multiply-add counts
/// 2. Takes about `seconds` and returns the best of several windows.
double measure_fma_peak(double seconds = 0.03);

}  // namespace difftape
