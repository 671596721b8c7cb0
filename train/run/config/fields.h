#pragma once
// The registry of the keys of a run; sweep_settings.h has those of a sweep. It serves the reader,
// `config keys`, `config show` and the JSON Schema. Defaults come from the initialisers of the
// structs.

#include <string>
#include <vector>

#include "train/run/config/config.h"
#include "train/run/config/value.h"

namespace difftape::run {

/// What `config keys` and the schema say of a key.
struct KeyInfo {
  std::string key;   ///< "model.d_model"
  ValueSpec spec;    ///< type, default and range
  std::string unit;  ///< empty: none
  std::string help;  ///< what it means
};

struct Field : KeyInfo {
  ConfigValue (*get)(const Config&);
  void (*set)(Config&, const ConfigValue&);  ///< the value has the type of spec.initial
};

/// Every key, grouped by section in the order of the structs.
const std::vector<Field>& fields();

/// Of these the keys of the section `model:`, in the order of the structs.
std::vector<Field> model_fields();

/// Null if there is no such key.
const Field* find_field(const std::string& key);

}  // namespace difftape::run
