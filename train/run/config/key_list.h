#pragma once
// The registry of keys as text: `difftape config keys`.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "train/run/config/fields.h"

namespace difftape::run {

using KeyList = std::vector<const KeyInfo*>;

/// Keys that begin with `prefix`, those of sweeps last; all if it is empty. Throws UsageError if
/// there are none, with the key that may be meant.
KeyList keys_that_begin(std::string_view prefix);

/// One line a key in aligned columns: key, type, default, range, unit and a sentence. Where that is
/// wider than `width`, three lines a key, the later two indented, broken between words.
std::string describe_keys(const KeyList& keys, std::size_t width);

/// The same as a JSON array of objects.
std::string keys_json(const KeyList& keys);

}  // namespace difftape::run
