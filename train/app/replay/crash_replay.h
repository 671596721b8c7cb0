#pragma once
// Repeats the step, or the validation, of a crash dump, without the data.

#include <filesystem>
#include <string>
#include <vector>

#include "train/run/loop/crash_dump.h"

namespace difftape::app {

/// A number as recorded and as computed now.
struct Repeated {
  std::string name;  ///< "loss", "grad_norm", or "grad_norm/<parameter>"
  double recorded = 0, now = 0;
};

struct CrashReplay {
  std::filesystem::path path;
  std::string run;           ///< run.name
  run::Divergence recorded;  ///< as in the crash dump
  run::Divergence now;       ///< its step and quantity; parameter and op as found again
  std::vector<Repeated> numbers;

  /// Whether every number has the recorded bits and the same op and parameter were first.
  bool identical() const;
};

/// Throws MissingInput; DataError for a file that is damaged, no crash dump, or of the other
/// precision; ConfigError if this machine cannot multiply as train.precision asks.
CrashReplay replay_crash(const std::filesystem::path& path);

/// What `difftape replay` prints.
std::string to_text(const CrashReplay& replay);

}  // namespace difftape::app
