#pragma once
// Exit codes, on which scripts and sweeps depend, and stop requests by signals, which training
// handles between steps so that no work is lost.

#include <exception>

namespace difftape::system {

/// Exit codes of the program, from sysexits.h if one fits.
enum class Exit : int {
  ok = 0,
  check_failed = 1,    ///< a check ran and failed, for example gradcheck
  usage = 64,          ///< wrong command line
  bad_data = 65,       ///< data or a checkpoint cannot be used
  missing_input = 66,  ///< an input file is missing or cannot be read
  cannot_write = 74,   ///< an output cannot be written
  stopped_early = 75,  ///< stopped before the end, resumable
  config = 78,         ///< an error in the configuration
  diverged = 86,       ///< training diverged; recorded as a result
  sigint = 130,
  sigterm = 143,
};

/// Returns the exit code of an error by its type; `bad_data` for types outside core/error.h.
Exit exit_of(const std::exception& error);

/// Records SIGINT, SIGTERM, SIGHUP and SIGUSR1 during its lifetime instead of letting them end the
/// process. The second SIGINT or SIGTERM in a row ends it, unless it comes within kRepeatSeconds:
/// `timeout` and terminals send one signal twice. SIGHUP (closed terminal) and SIGUSR1 (which
/// mpirun forwards and ends nothing) count as SIGTERM. Signals that were ignored before stay
/// ignored. Requests nest: the request of a run also reports signals that its sweep's request
/// received. Main thread only.
class StopRequest {
 public:
  static constexpr double kRepeatSeconds = 0.2;

  /// `note`, which must outlive the object, is printed to stderr when the first signal arrives;
  /// null: the note of the enclosing request, if any.
  explicit StopRequest(const char* note = nullptr);
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  /// Returns the exit code of the last signal since the outermost request began, or Exit::ok.
  Exit received() const;

 private:
  const char* outer_note_;
};

}  // namespace difftape::system
