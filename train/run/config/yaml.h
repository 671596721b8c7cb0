#pragma once
// Parses YAML to a plain tree whose nodes know their locations, and collects errors. All YAML is
// read here.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace difftape::run {

/// Location of a configuration value.
struct SourceLocation {
  std::string source;  ///< a file, or an option such as "--set optim.lr=3"; empty: a default
  int line = 0;        ///< from 1; 0 if the source has no lines
  int column = 0;      ///< from 1

  /// Returns "configs/base/text_0.9m.yaml:3:5", or the source if it has no lines.
  std::string str() const;
  /// Returns a short form: "default", "configs/base/text_0.9m.yaml:3", "--set".
  std::string origin() const;
};

/// Collects errors so that all are reported together, up to a readable number.
class ConfigErrors {
 public:
  /// Adds the line "<location>: error: <message>" unless it is there already. The middle of a long
  /// message is left out.
  void add(const SourceLocation& location, const std::string& message);
  bool any() const { return !lines_.empty(); }
  /// Returns true if further errors are only counted, so their messages do not matter.
  bool full() const;
  /// Throws one ConfigError with all lines, in the order in which they were added.
  void throw_if_any() const;

 private:
  std::vector<std::string> lines_;
  int more_ = 0;  ///< number of errors beyond the limit
};

struct YamlPair;

struct YamlNode {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  SourceLocation location;
  std::string text;             ///< value of a scalar
  bool quoted = false;          ///< a quoted scalar is a string, never a number
  std::vector<YamlNode> items;  ///< items of a list
  std::vector<YamlPair> pairs;  ///< entries of a map in file order, duplicates included

  /// Returns a name for messages: "a map", "a list", "nothing", "'abc'" or "the string '100'".
  std::string describe() const;
};

struct YamlPair {
  YamlNode key;  ///< a scalar
  YamlNode value;
};

enum class YamlSource { file, command_line };  ///< locations have lines in a file only

/// Parses one document; empty text gives a null node. Returns nothing after adding to `errors` a
/// syntax error, a second document, an alias or a key that is not a scalar.
std::optional<YamlNode> parse_yaml(const std::string& text, const std::string& source,
                                   YamlSource kind, ConfigErrors& errors);

/// Returns `text` without the white space around it.
std::string_view trimmed(std::string_view text);

/// Returns the value of a command line override as it is, without the comments, anchors and
/// documents of YAML: null for empty text, a list for [a, "b, c"], else a scalar. Items of a list
/// lose the spaces and the quotes around them.
YamlNode literal_value(std::string_view text, const SourceLocation& location);

}  // namespace difftape::run
