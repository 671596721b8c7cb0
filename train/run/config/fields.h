#pragma once
// The one registry of configuration keys. It serves the reader, `config keys`, `config show` and
// the JSON Schema. Defaults come from the initialisers of the structs.

#include <string>
#include <vector>

#include "train/run/config/config.h"
#include "train/run/config/value.h"

namespace difftape::run {

struct Field {
  std::string key;       ///< "model.d_model"
  ValueSpec spec;        ///< type, default and range
  std::string unit;      ///< empty: none
  std::string sentence;  ///< what it means
  ConfigValue (*get)(const Config&);
  void (*set)(Config&, const ConfigValue&);  ///< the value has the type of spec.initial
};

/// Every key, grouped by section in the order of the structs.
const std::vector<Field>& fields();

/// Null if there is no such key.
const Field* find_field(const std::string& key);

}  // namespace difftape::run
