#pragma once
// Rules that bind several keys.

#include <set>
#include <string>

#include "train/run/config/reader.h"

namespace difftape::run {

/// True for one word that can be a folder: no '/', no control characters, not "." or "..".
bool can_name_folder(const std::string& name);

/// Adds an error for every broken rule, at the location of the key that was given last among those
/// it binds. Rules that bind a key in `unreadable` are skipped.
void validate(const ResolvedConfig& resolved, const std::set<std::string>& unreadable,
              ConfigErrors& errors);

}  // namespace difftape::run
