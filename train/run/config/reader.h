#pragma once
// Reads a configuration file and its overrides strictly into a Config, and remembers the origin of
// every value. Declares the rules that involve several keys.

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "layers/model_rules.h"
#include "train/run/config/config.h"
#include "train/run/config/yaml.h"

namespace difftape::run {

/// Source of one value.
struct Origin {
  SourceLocation location;
  int rank = 0;            ///< position in the order of application; 0: the default
  std::string share = {};  ///< "10% of train.steps" for a relative value, else empty

  /// Returns a short form for people: "default", "a.yaml:3", "10% of train.steps, --set".
  std::string str() const;
};

struct ResolvedConfig {
  Config config;
  std::map<std::string, Origin> origins;  ///< by key; most keys with defaults are missing

  /// Returns the source of a key's value; an empty location for a default.
  Origin origin(const std::string& key) const;
};

/// Reads a file, or the config.yaml of a run directory, with its bases, then `key=value` overrides.
/// Throws ConfigError with all errors of all sources, or MissingInput if the file does not exist or
/// is not readable.
ResolvedConfig load_config(const std::string& path, const std::vector<std::string>& overrides = {});

/// Reads a configuration stored in another file, such as a checkpoint, then `key=value` overrides.
/// `where` names it in errors. Throws ConfigError.
Config config_from_yaml(const std::string& text, const std::string& where,
                        const std::vector<std::string>& overrides = {});

/// Sets one key from its value in YAML, without the rules that involve several keys. Throws
/// ConfigError.
void set_value(Config& config, const std::string& key, const std::string& yaml);

/// A key and the value that one source gives it.
struct Assignment {
  std::string key;  ///< dotted; always a known key
  YamlNode value;
  SourceLocation location;  ///< of the key
};

/// Assignments of files, their bases, sweep arms and `--set`, flattened to dotted keys in the order
/// in which they apply: a later assignment of a key replaces an earlier one.
/// Unknown and duplicate keys, unreadable files and bad bases are added to `errors`, which must
/// outlive this object. Copies are independent: a sweep reads its file once and copies it per arm.
class Assignments {
 public:
  /// `extra_keys` are known in addition to the keys of Config; their values may be maps.
  explicit Assignments(ConfigErrors& errors, std::vector<std::string> extra_keys = {});

  /// Adds a file after its bases. Throws MissingInput if the file does not exist.
  void add_file(const std::string& path);
  /// Adds YAML text that a program stored, without bases; its paths stay as they are. `where` names
  /// it in messages. Keys of earlier versions are left out.
  void add_text(const std::string& text, const std::string& where);
  /// Adds a map within a file, such as a sweep arm. Its bases are relative to that file.
  void add_map(const YamlNode& map);
  /// Adds one `key=value` of the command line. The value is taken as it is.
  void add_override(const std::string& text);

  /// Adds a known key whose value is an item of a list, such as a sweep's grid.
  void add_node(const std::string& key, const YamlNode& value);
  /// Adds a scalar derived from another setting, which the user wrote at `location`.
  void add_value(const std::string& key, const std::string& text, const SourceLocation& location);

  /// Removes the assignments of `extra_keys`, which resolve() ignores.
  void remove_extra();

  /// Returns the last assignment of a key, or null.
  const Assignment* find(const std::string& key) const;
  const std::vector<Assignment>& all() const { return assignments_; }

  /// Reads every value, then checks each rule whose keys are all readable. Paths become absolute:
  /// a path in a file is relative to the file's folder, any other to the working directory.
  ResolvedConfig resolve() const;

 private:
  using Seen = std::map<std::string, SourceLocation>;
  struct Names {
    std::vector<std::string> keys, sections;
  };

  void load(const std::string& path, const SourceLocation* named_at);
  void add_root(const YamlNode& root, bool may_have_bases);
  void add_bases(const YamlNode& value);
  void flatten(const YamlNode& map, const std::string& section, Seen& seen);
  void unknown(const std::string& key, const YamlNode& value, const SourceLocation& location);

  ConfigErrors* errors_;
  std::shared_ptr<const Names> known_;  ///< shared by copies
  std::vector<Assignment> assignments_;
  std::set<std::string> suspects_;    ///< keys that the unknown keys probably mean
  std::vector<std::string> loading_;  ///< files whose bases are being read, outermost first
  std::set<std::string> loaded_;      ///< files already read; each applies once
  std::set<std::string> texts_;       ///< sources whose paths stay as they are
  bool complete_ = true;              ///< every file could be parsed
};

/// Returns the broken rules of a model (layers/model_rules.h) and its settings that have no effect.
std::vector<ModelConflict> model_conflicts(const ModelConfig& model);
/// Returns the reason why this model cannot be built, such as an odd number of heads; empty if it
/// can.
std::string unsupported_reason(const ModelConfig& model);

/// Returns a warning for each setting that is valid but has no effect, with an alternative.
std::vector<std::string> warnings_of(const Config& config);

/// Returns true for a valid folder name: not empty, no '/', no control characters, not "." or "..".
bool can_name_folder(const std::string& name);

/// Adds an error for every broken rule between several keys, at the location of the key that was
/// given last. Rules with a key in `unreadable` are skipped.
void validate(const ResolvedConfig& resolved, const std::set<std::string>& unreadable,
              ConfigErrors& errors);

}  // namespace difftape::run
