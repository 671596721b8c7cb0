#pragma once
// Repeats the step, or the validation, that a dump holds, without the data.

#include <filesystem>
#include <string>
#include <vector>

#include "train/run/loop/dump.h"

namespace difftape::app {

/// A number then and now.
struct Repeated {
  std::string name;  ///< "loss", "grad_norm", or "grad_norm/<parameter>"
  double recorded = 0, now = 0;
};

struct DumpReplay {
  std::filesystem::path path;
  std::string run;           ///< run.name
  run::Divergence recorded;  ///< as in the dump
  run::Divergence now;       ///< its step and quantity; parameter and op as found again
  std::vector<Repeated> numbers;

  /// Whether every number has the recorded bits and the same op and parameter were first.
  bool identical() const;
};

/// Throws MissingInput; DataError for a file that is damaged, no dump, or of the other precision;
/// ConfigError if this machine cannot multiply as train.precision asks.
DumpReplay replay_dump(const std::filesystem::path& path);

/// What `difftape replay` prints.
std::string to_text(const DumpReplay& replay);

}  // namespace difftape::app
