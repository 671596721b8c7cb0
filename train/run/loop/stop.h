#pragma once
// Ctrl-C and termination requests, noticed between steps so that nothing is lost.

#include "train/system/exit.h"

namespace difftape::run {

/// While one lives, SIGINT, SIGTERM and SIGHUP (a closed terminal, taken as SIGTERM) are remembered
/// instead of ending the process; the second SIGINT ends it. A signal that was ignored before stays
/// ignored. They nest: an inner one, of a run, knows what an outer one, of a sweep, received. Main
/// thread only.
class StopRequest {
 public:
  StopRequest();
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  /// The exit code of the last signal since the outermost began, system::Exit::ok if none came.
  system::Exit received() const;
};

}  // namespace difftape::run
