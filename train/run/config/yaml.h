#pragma once
// YAML text as a plain tree in which every node knows its location. The only reader of YAML.

#include <optional>
#include <string>
#include <vector>

#include "train/run/config/diagnostics.h"

namespace difftape::run {

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
