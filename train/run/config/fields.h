#pragma once
// The registry of the keys of a run; sweep_settings.h has those of a sweep. It serves the reader,
// `config keys`, `config show` and the JSON Schema. Defaults come from the initialisers of the
// structs.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/run/config/config.h"
#include "train/run/config/value.h"

namespace difftape::run {

/// What a key is about; Field::flags has several.
enum KeyFlag : unsigned {
  kOfResult = 1,       ///< decides results: a run goes on with the value it began with
  kOfNumbers = 2,      ///< likewise, whatever the run is called and wherever its files are
  kOfTask = 4,         ///< what is learned, and how long: runs of different tasks do not compare
  kOfArm = 8,          ///< the same in all runs of an arm: no name, learning rate or measurement
  kOfAttention = 16,   ///< differs between arms that compare kinds of attention
  kOfSweep = 32,       ///< decided by a sweep: cannot be set in an arm or swept
  kNamesRun = 64,      ///< what a run is called, and where it is
  kNamesData = 128,    ///< files, of whose contents a run knows the digest
  kBesideModel = 256,  ///< weights of a model fit any value
  kDecides = kOfResult | kOfNumbers | kOfArm,
};

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
  unsigned flags;                            ///< of KeyFlag
};

/// Every key, grouped by section in the order of the structs.
const std::vector<Field>& fields();

/// Of these the keys of the section `model:`, in the order of the structs.
std::vector<Field> model_fields();

/// Null if there is no such key.
const Field* find_field(const std::string& key);

/// The flags of most keys in the section of `key`.
unsigned usual_flags(std::string_view key);
/// Whether a key has one of the flags. One that another version knows has those of its section.
bool has_flag(const std::string& key, unsigned flags);

struct FrameworkAlias {
  std::string_view name;  ///< "n_embd"
  std::string_view key;   ///< ours, "model.d_model"; empty: there is nothing like it here
  std::string_view note;  ///< what differs from it here, or why there is nothing
  bool section = false;   ///< a section: "optimizer"

  /// "it is model.d_model here", "it is optim.betas here: both in one list" or the note.
  std::string description() const;
};

std::span<const FrameworkAlias> framework_aliases();

/// By the last part of a key, "model.n_embd"; null if the name is nobody's.
const FrameworkAlias* find_framework_alias(std::string_view key, bool section);

/// "lr" of "optim.lr".
std::string_view last_part(std::string_view key);
/// As names of Python are written: "Learning-Rate" is "learning_rate".
std::string normalised(std::string_view name);

}  // namespace difftape::run
