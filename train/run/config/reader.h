#pragma once
// A configuration file and its overrides, read strictly into a Config that knows where every value
// came from.

#include <map>
#include <string>
#include <vector>

#include "train/run/config/config.h"
#include "train/run/config/diagnostics.h"

namespace difftape::run {

struct Origin {
  SourceLocation location;
  int rank = 0;  ///< position in the order of application; 0: the default
};

struct ResolvedConfig {
  Config config;
  std::map<std::string, Origin> origins;  ///< of the keys that were given

  /// Where the value of a key came from; an empty location for a default.
  Origin origin(const std::string& key) const;
};

/// Reads a file with its bases, then `key=value` overrides. Throws ConfigError with every error
/// of all of them, or MissingInput if the file is not there or not readable.
ResolvedConfig load_config(const std::string& path, const std::vector<std::string>& overrides = {});

/// Reads a configuration stored in another file, such as a checkpoint. `where` names it in errors.
/// Throws ConfigError.
Config config_from_yaml(const std::string& text, const std::string& where);

}  // namespace difftape::run
