#pragma once
// Registry of the keys of a run; sweep_settings.h has the keys of a sweep. The reader,
// `config keys`, `config show` and the JSON Schema use it. Defaults are the initializers of the
// structs.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/run/config/config.h"
#include "train/run/config/value.h"

namespace difftape::run {

/// Bits that classify a key; Field::flags combines several.
enum KeyFlag : unsigned {
  kOfResult = 1,       ///< affects recorded results: a resumed run keeps its value
  kOfNumbers = 2,      ///< affects computed numbers; names and paths do not
  kOfTask = 4,         ///< task and length of training: runs that differ cannot be compared
  kOfArm = 8,          ///< equal in all runs of an arm: not a name, learning rate or measurement
  kOfAttention = 16,   ///< may differ between arms that compare attention kinds
  kOfSweep = 32,       ///< set by a sweep: an arm or grid cannot set it
  kNamesRun = 64,      ///< name or path of the run
  kNamesData = 128,    ///< paths of data files, whose digests a run records
  kBesideModel = 256,  ///< does not affect whether saved weights fit the model
  kDecides = kOfResult | kOfNumbers | kOfArm,
};

/// Description of a key for `config keys` and the schema.
struct KeyInfo {
  std::string key;   ///< "model.d_model"
  ValueSpec spec;    ///< type, default and range
  std::string unit;  ///< empty: none
  std::string help;  ///< its meaning, one or more sentences
};

struct Field : KeyInfo {
  ConfigValue (*get)(const Config&);
  void (*set)(Config&, const ConfigValue&);  ///< the value has the type of spec.initial
  unsigned flags;                            ///< KeyFlag bits
};

/// Returns every key, grouped by section in the order of the structs.
const std::vector<Field>& fields();

/// Returns the keys of the section `model:`, a part of fields().
std::vector<Field> model_fields();

/// Returns the entry of a key, or null if the key is unknown.
const Field* find_field(const std::string& key);

/// Returns the flags that most keys in the section of `key` have.
unsigned usual_flags(std::string_view key);
/// Returns true if a key has one of the flags. A key that only another version of difftape knows
/// has the usual flags of its section.
bool has_flag(const std::string& key, unsigned flags);

/// A key of nanoGPT, Hugging Face or another framework, for hints in errors.
struct FrameworkAlias {
  std::string_view name;  ///< "n_embd"
  std::string_view key;   ///< equivalent in difftape, "model.d_model"; empty: none
  std::string_view note;  ///< difference from the equivalent, or the reason why there is none
  bool section = false;   ///< names a section, such as "optimizer"

  /// Returns "it is model.d_model here", "it is optim.betas here: NOTE" or the note alone.
  std::string description() const;
};

std::span<const FrameworkAlias> framework_aliases();

/// Finds an alias by the last part of a key such as "model.n_embd"; null if there is none.
const FrameworkAlias* find_framework_alias(std::string_view key, bool section);

/// Returns "lr" for "optim.lr".
std::string_view last_part(std::string_view key);
/// Converts a name to the style of Python: "Learning-Rate" becomes "learning_rate".
std::string normalized(std::string_view name);

}  // namespace difftape::run
