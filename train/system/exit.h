#pragma once
// The codes with which the program ends. Scripts depend on them, and a sweep reads them of the runs
// that it starts. Ctrl-C and termination requests are noticed between steps so that nothing is
// lost.

#include <exception>

namespace difftape::system {

/// Process exit codes, those of sysexits.h where one fits.
enum class Exit : int {
  ok = 0,
  check_failed = 1,    ///< a check ran and failed, for example gradcheck
  usage = 64,          ///< wrong command line
  bad_data = 65,       ///< data or a checkpoint that cannot be used
  missing_input = 66,  ///< an input file that is not there or cannot be read
  cannot_write = 74,   ///< an output that cannot be written
  stopped_early = 75,  ///< stopped before the end, resumable
  config = 78,         ///< an error in the configuration
  diverged = 86,       ///< training diverged; recorded as a result
  sigint = 130,
  sigterm = 143,
};

/// The code of an error by its type; `bad_data` for what is not in core/error.h.
Exit exit_of(const std::exception& error);

/// While one lives, SIGINT, SIGTERM and SIGHUP (a closed terminal, taken as SIGTERM) are remembered
/// instead of ending the process; the second SIGINT ends it. A signal that was ignored before stays
/// ignored. They nest: an inner one (of a run) also has what an outer one (of a sweep) received.
/// Main thread only.
class StopRequest {
 public:
  StopRequest();
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  /// The exit code of the last signal since the outermost began, Exit::ok if none came.
  Exit received() const;
};

}  // namespace difftape::system
