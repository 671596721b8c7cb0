#pragma once
// Ctrl-C and termination requests, noticed between steps so that nothing is lost.

#include "core/error.h"

namespace difftape {

/// While it lives, SIGINT and SIGTERM are remembered instead of ending the process; the second
/// SIGINT ends it. One at a time.
class StopRequest {
 public:
  StopRequest();
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  /// The exit code of the signal that came, Exit::ok if none did.
  Exit received() const;
};

}  // namespace difftape
