#pragma once
// A configuration file and its overrides, read strictly into a Config that knows where every value
// came from; and the rules that bind several keys.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "train/run/config/config.h"
#include "train/run/config/yaml.h"

namespace difftape::run {

struct Origin {
  SourceLocation location;
  int rank = 0;            ///< position in the order of application; 0: the default
  std::string share = {};  ///< of a value that follows from another: "10% of train.steps"

  /// For people: "default", "a.yaml:3", "10% of train.steps, --set".
  std::string str() const;
};

struct ResolvedConfig {
  Config config;
  std::map<std::string, Origin> origins;  ///< of the keys that were given, or follow from others

  /// Where the value of a key came from; an empty location for a default.
  Origin origin(const std::string& key) const;
};

/// Reads a file, or the config.yaml of a run directory, with its bases, then `key=value` overrides.
/// Throws ConfigError with every error of all of them, or MissingInput if the file is not there or
/// not readable.
ResolvedConfig load_config(const std::string& path, const std::vector<std::string>& overrides = {});

/// Reads a configuration stored in another file, such as a checkpoint, then `key=value` overrides.
/// `where` names it in errors. Throws ConfigError.
Config config_from_yaml(const std::string& text, const std::string& where,
                        const std::vector<std::string>& overrides = {});

/// Sets one key from its value in YAML, without the rules that bind several keys. Throws
/// ConfigError.
void set_value(Config& config, const std::string& key, const std::string& yaml);

struct Assignment {
  std::string key;  ///< dotted; always a known key
  YamlNode value;
  SourceLocation location;  ///< of the key
};

/// What files, their bases, sweep arms and `--set` say, flattened to dotted keys in the order in
/// which they apply: a later assignment of a key replaces an earlier one.
/// Unknown and duplicate keys, unreadable files and bad bases are added to `errors`, which must
/// outlive this. Copies continue independently: a sweep reads its file once and copies per arm.
class Assignments {
 public:
  /// `extra_keys` are known besides those of Config; their values may be maps.
  explicit Assignments(ConfigErrors& errors, std::vector<std::string> extra_keys = {});

  /// A file after its bases. Throws MissingInput if there is no such file.
  void add_file(const std::string& path);
  /// Text without bases, whose paths stay as they are. `where` names it in messages.
  void add_text(const std::string& text, const std::string& where);
  /// A map within a file, with bases relative to that file: a sweep arm.
  void add_map(const YamlNode& map);
  /// One `key=value` of the command line, the value in YAML.
  void add_override(const std::string& text);

  /// The value of a known key that is written elsewhere: in a list of values to try.
  void add_node(const std::string& key, const YamlNode& value);
  /// A plain text or number that follows from something else the user wrote at `location`.
  void add_value(const std::string& key, const std::string& text, const SourceLocation& location);

  /// The last assignment of a key, or null.
  const Assignment* find(const std::string& key) const;
  const std::vector<Assignment>& all() const { return assignments_; }

  /// Reads every value and runs the cross-field checks whose keys were all readable. Paths become
  /// absolute: those in a file are seen from its folder, others from the working directory.
  ResolvedConfig resolve() const;

 private:
  using Seen = std::map<std::string, SourceLocation>;

  void load(const std::string& path, const SourceLocation* named_at);
  void add_root(const YamlNode& root, bool may_have_bases);
  void add_bases(const YamlNode& value);
  void flatten(const YamlNode& map, const std::string& section, Seen& seen);
  void unknown(const std::string& key, const YamlNode& value, const SourceLocation& location);

  ConfigErrors* errors_;
  std::vector<std::string> keys_, sections_;
  std::vector<Assignment> assignments_;
  std::set<std::string> suspects_;    ///< keys probably meant by unknown ones
  std::vector<std::string> loading_;  ///< files whose bases are being read, outermost first
  std::set<std::string> loaded_;      ///< a file that is reached twice applies once, the first time
  std::set<std::string> texts_;       ///< sources whose paths stay as they are
  bool complete_ = true;              ///< every file could be parsed
};

/// An invalid combination of the keys of a model: the keys, and what to write instead.
struct ConfigConflict {
  std::vector<std::string> keys;  ///< such as "model.attention.pairing"
  std::string message;
};
std::vector<ConfigConflict> model_conflicts(const ModelConfig& model);
/// Why this model cannot be built, for example because its heads make no pairs; empty if it can.
std::string unsupported_reason(const ModelConfig& model);

/// Settings that are valid but without effect, each with what to write instead.
std::vector<std::string> warnings_of(const Config& config);

/// True for one word that can be a folder: no '/', no control characters, not "." or "..".
bool can_name_folder(const std::string& name);

/// Adds an error for every broken rule that binds several keys, at the location of the key that was
/// given last among those it binds. Rules that bind a key in `unreadable` are skipped.
void validate(const ResolvedConfig& resolved, const std::set<std::string>& unreadable,
              ConfigErrors& errors);

}  // namespace difftape::run
