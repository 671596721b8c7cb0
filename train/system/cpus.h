#pragma once
// The CPU time that this process may use and that its threads get.

#include <filesystem>
#include <optional>

namespace difftape::system {

/// Returns the CPUs that the quotas of this process's control groups allow, for example 0.5, or
/// nothing without a quota. `root` contains /proc and /sys.
std::optional<double> cpu_quota(const std::filesystem::path& root = "/");

/// Use of the processor by this process since some time.
struct CpuUse {
  double seconds = 0;      ///< of wall time
  double cpu_seconds = 0;  ///< of all threads
  double preemptions = 0;  ///< how often a thread that could run had to stop

  /// Returns the use since the process started, with an arbitrary origin of wall time.
  static CpuUse now();
  CpuUse operator-(const CpuUse& since) const;
};

/// Returns true if `threads` threads that work in step wait for each other, because other programs
/// or a quota leave them less than three quarters of their CPUs. Sleeping threads do not count: a
/// thread that has nothing to do is not preempted.
bool wait_for_each_other(const CpuUse& use, int threads);

}  // namespace difftape::system
