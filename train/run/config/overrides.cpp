// Values of the command line: `--set KEY=VALUE`.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <variant>

#include "train/run/config/fields.h"
#include "train/run/config/reader.h"

namespace difftape::run {
namespace {

/// Returns the value of `--set KEY=VALUE`: for a string its text, for a section or a key of a sweep
/// that is written as a map its YAML, else a literal_value(). Adds invalid YAML to `errors`.
std::optional<YamlNode> override_value(const std::string& key, const std::string& text,
                                       const SourceLocation& location, ConfigErrors& errors) {
  const Field* field = find_field(key);
  if (!field && text.starts_with('{'))
    return parse_yaml(text, location.source, YamlSource::command_line, errors);
  const ConfigValue like = field ? field->spec.initial : ConfigValue();
  const bool one_string = field && std::holds_alternative<std::string>(like);
  const bool strings = !field || std::holds_alternative<std::vector<std::string>>(like);
  const bool one_word = field && !field->spec.constraint.names.empty();
  const bool as_it_is = (one_string && !one_word) || strings;
  YamlNode value = literal_value(as_it_is ? text : trimmed(text), location);
  if (!one_string || text.empty()) return value;
  value.kind = YamlNode::Kind::scalar;
  value.items.clear();
  return value;
}

/// Returns true for a value of --set that names no file, such as that of an unset shell variable.
bool is_empty(const YamlNode& value) {
  switch (value.kind) {
    case YamlNode::Kind::null:
      return true;
    case YamlNode::Kind::scalar:
      return value.text.empty();
    case YamlNode::Kind::list:
      return std::ranges::all_of(value.items, is_empty);
    case YamlNode::Kind::map:
      break;
  }
  return false;
}

}  // namespace

void Assignments::add_override(const std::string& text) {
  const SourceLocation location{"--set " + text, 0, 0};
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    errors_->add(location, "expected key=value, for example --set optim.lr=0.001");
    return;
  }
  YamlNode key, root;
  key.text = text.substr(0, equals);
  auto value = override_value(key.text, text.substr(equals + 1), location, *errors_);
  if (!value) return;
  if (key.text == "data.path" && is_empty(*value)) {
    errors_->add(location,
                 "data.path: names no file; give a path, or leave this out to read the data of the "
                 "configuration");
    return;
  }
  value->location = key.location = root.location = location;
  root.kind = YamlNode::Kind::map;
  root.pairs.push_back({std::move(key), std::move(*value)});
  add_root(root, false);
}

}  // namespace difftape::run
