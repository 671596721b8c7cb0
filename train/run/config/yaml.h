#pragma once
// YAML text as a plain tree in which every node knows its location, and the errors found there. The
// only reader of YAML.

#include <optional>
#include <string>
#include <vector>

namespace difftape::run {

/// Where a configuration value was written.
struct SourceLocation {
  std::string source;  ///< a file, or what the user typed: "--set optim.lr=3"; empty: a default
  int line = 0;        ///< from 1; 0 if the source has no lines
  int column = 0;      ///< from 1

  /// "configs/base/text_0.9m.yaml:3:5", or the source alone where there are no lines.
  std::string str() const;
  /// Short form for people: "default", "configs/base/text_0.9m.yaml:3", "--set".
  std::string origin() const;
};

/// Collects errors so that one run reports all of them, up to a number that one can read.
class ConfigErrors {
 public:
  /// Adds the line "<location>: error: <message>", once; a long message without its middle.
  void add(const SourceLocation& location, const std::string& message);
  bool any() const { return !lines_.empty(); }
  /// Further errors are counted only: their messages need not be made.
  bool full() const;
  /// Throws one ConfigError of all lines, in the order in which they were found.
  void throw_if_any() const;

 private:
  std::vector<std::string> lines_;
  int more_ = 0;  ///< that were left out
};

struct YamlPair;

struct YamlNode {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  SourceLocation location;
  std::string text;             ///< of a scalar
  bool quoted = false;          ///< a scalar in quotes is text, whatever it looks like
  std::vector<YamlNode> items;  ///< of a list
  std::vector<YamlPair> pairs;  ///< of a map, in the order of the file, duplicates included

  /// How a message calls it: "a map", "a list", "nothing", "'abc'" or "the text '100'".
  std::string describe() const;
};

struct YamlPair {
  YamlNode key;  ///< a scalar
  YamlNode value;
};

enum class YamlSource { file, command_line };  ///< whether locations have lines

/// Parses one document; empty text is a null node. A syntax error, a second document, an alias or
/// a key that is not a scalar is added to `errors`, and nothing is returned.
std::optional<YamlNode> parse_yaml(const std::string& text, const std::string& source,
                                   YamlSource kind, ConfigErrors& errors);

}  // namespace difftape::run
