#include "train/run/config/writer.h"

#include <fmt/format.h>
#include <yaml-cpp/emitter.h>
#include <yaml-cpp/emittermanip.h>
#include <yaml-cpp/node/convert.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "train/run/config/sweep_settings.h"
#include "train/system/json.h"
#include "train/system/number.h"

namespace difftape::run {
namespace {

/// Quotes a string that a YAML reader would parse as a number or a boolean.
void emit(YAML::Emitter& out, const std::string& text) {
  const YAML::Node node(text);
  double number;
  bool boolean;
  if (YAML::convert<double>::decode(node, number) || YAML::convert<bool>::decode(node, boolean))
    out << YAML::DoubleQuoted;
  out << text;
}
void emit(YAML::Emitter& out, bool value) { out << value; }
void emit(YAML::Emitter& out, Index value) { out << value; }
void emit(YAML::Emitter& out, double value) { out << system::yaml_number(value); }
template <class T>
void emit(YAML::Emitter& out, const std::vector<T>& values) {
  out << YAML::Flow << YAML::BeginSeq;
  for (const T& value : values) emit(out, value);
  out << YAML::EndSeq;
}

std::vector<std::string> split(const std::string& key) {
  std::vector<std::string> parts;
  for (size_t begin = 0, dot; begin <= key.size(); begin = dot + 1) {
    dot = std::min(key.find('.', begin), key.size());
    parts.push_back(key.substr(begin, dot - begin));
  }
  return parts;
}

}  // namespace

std::string yaml_text(const ConfigValue& value) {
  YAML::Emitter out;
  std::visit([&](const auto& v) { emit(out, v); }, value);
  return out.c_str();
}

std::string value_text(const Config& config, const std::string& key) {
  const Field* field = find_field(key);
  if (!field) return "";
  const ConfigValue value = field->get(config);
  const auto* text = std::get_if<std::string>(&value);
  return text ? *text : yaml_text(value);
}

namespace {

/// Writes all keys, with comments unless `origins` is null.
std::string write(const Config& config, const ResolvedConfig* origins) {
  constexpr size_t kCommentColumn = 32;
  YAML::Emitter out;
  std::vector<std::string> open;  // sections of the current map
  out << YAML::BeginMap;
  for (const Field& field : fields()) {
    std::vector<std::string> section = split(field.key);
    const std::string name = section.back();
    section.pop_back();
    size_t shared = 0;
    while (shared < std::min(open.size(), section.size()) && open[shared] == section[shared])
      ++shared;
    for (; open.size() > shared; open.pop_back()) out << YAML::EndMap;
    for (; open.size() < section.size(); open.push_back(section[open.size()]))
      out << YAML::Key << section[open.size()] << YAML::Value << YAML::BeginMap;
    out << YAML::Key << name << YAML::Value;
    const ConfigValue value = field.get(config);
    std::visit([&](const auto& v) { emit(out, v); }, value);
    if (origins) {
      const size_t width = 2 * section.size() + name.size() + 2 + yaml_text(value).size();
      out.SetPreCommentIndent(width + 2 > kCommentColumn ? 2 : kCommentColumn - width);
      out << YAML::Comment(origins->origin(field.key).str());
    }
  }
  for (; !open.empty(); open.pop_back()) out << YAML::EndMap;
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

}  // namespace

std::string to_yaml(const Config& config) { return write(config, nullptr); }

std::string to_yaml_with_origins(const ResolvedConfig& resolved) {
  return write(resolved.config, &resolved);
}

FlatConfig flat_config(const Config& config, unsigned flags) {
  FlatConfig flat;
  for (const Field& field : fields())
    if (flags == kAllKeys || (field.flags & flags) != 0)
      flat.emplace_back(field.key, yaml_text(field.get(config)));
  return flat;
}

std::vector<KeyDifference> differences(const FlatConfig& a, const FlatConfig& b) {
  std::vector<KeyDifference> found;
  for (const auto& [key, value] : a) {
    const auto other = std::ranges::find(b, key, &FlatConfig::value_type::first);
    if (other != b.end() && other->second != value) found.push_back({key, value, other->second});
  }
  return found;
}

std::vector<KeyDifference> differences(const Config& a, const Config& b, unsigned flags) {
  return differences(flat_config(a, flags), flat_config(b, flags));
}

std::string in_words(const std::vector<KeyDifference>& differences, const char* where) {
  std::string text;
  for (const auto& [key, a, b] : differences)
    text += fmt::format("{}{} is {}{}, not {}", text.empty() ? "" : "; ", key, a, where, b);
  return text;
}

nlohmann::ordered_json json_of(const ConfigValue& value) {
  return std::visit([](const auto& v) { return nlohmann::ordered_json(v); }, value);
}

std::string to_json(const Config& config) {
  nlohmann::ordered_json json;
  for (const Field& field : fields()) {
    nlohmann::ordered_json* at = &json;
    for (const std::string& part : split(field.key)) at = &(*at)[part];
    *at = json_of(field.get(config));
  }
  return system::json_text(json, 2) + "\n";
}

namespace {

using Json = nlohmann::ordered_json;

Json limit(double value, bool whole) {
  return whole ? Json(static_cast<Index>(value)) : Json(value);
}

/// Returns the schema of a scalar, or of each item of a list.
Json item_schema(const char* type, const Constraint& constraint) {
  if (!constraint.share_of.empty()) {
    Constraint number = constraint;
    number.share_of.clear();
    Json either;
    either["anyOf"] = {item_schema(type, number),
                       {{"type", "string"}, {"pattern", "^[0-9]*[.]?[0-9]+%$"}}};
    return either;
  }
  if (constraint.or_number) {
    Constraint number = constraint;
    number.names.clear();
    number.or_number = false;
    Json either;
    either["anyOf"] = {item_schema(type, choices(constraint.names)), item_schema("number", number)};
    return either;
  }
  const bool whole = std::string_view(type) == "integer";
  Json item = {{"type", type}};
  if (!constraint.names.empty()) item["enum"] = constraint.names;
  // An editor parses `true` as a boolean, the reader as the word "true".
  const auto boolean = std::ranges::find(constraint.names, "true");
  if (boolean != constraint.names.end()) {
    item.erase("type");
    item["enum"].insert(item["enum"].end(), {true, false});
  }
  if (std::isfinite(constraint.min))
    item[constraint.above_min ? "exclusiveMinimum" : "minimum"] = limit(constraint.min, whole);
  if (std::isfinite(constraint.max))
    item[constraint.below_max ? "exclusiveMaximum" : "maximum"] = limit(constraint.max, whole);
  return item;
}

Json value_schema(const ValueSpec& spec) {
  constexpr const char* kTypes[] = {"boolean", "integer", "number", "string",
                                    "integer", "number",  "string"};
  Json item = item_schema(kTypes[spec.initial.index()], spec.constraint);
  if (spec.initial.index() < 4) return item;
  Json list = {{"type", "array"}, {"items", item}};
  if (spec.length != 0) list["minItems"] = list["maxItems"] = spec.length;
  // A list of one string may be written as the string.
  if (std::holds_alternative<std::vector<std::string>>(spec.initial))
    return {{"anyOf", {item, list}}};
  return list;
}

Json key_schema(const KeyInfo& key) {
  Json value = value_schema(key.spec);
  value["default"] = json_of(key.spec.standard());
  value["description"] = key.help + (key.unit.empty() ? "" : " Unit: " + key.unit + ".");
  return value;
}

/// Returns an object that allows known properties only; `section:` without a value is empty.
Json object_schema() {
  return {{"type", {"object", "null"}},
          {"additionalProperties", false},
          {"properties", Json::object()}};
}

Json list_of(const Json& item) { return {{"type", "array"}, {"minItems", 1}, {"items", item}}; }

Json reference(const std::string& pointer) { return {{"$ref", "#" + pointer}}; }

/// Builds nested objects from dotted keys. The schema of a key or section is at its nested
/// location; a dotted spelling in any enclosing section is a reference to it.
class Tree {
 public:
  /// `at` is the JSON pointer to the tree in the whole schema.
  explicit Tree(std::string at) : at_(std::move(at)) {}

  void add(const std::string& key, const Json& value) { add(root_, at_, key, value); }
  Json& root() { return root_; }

 private:
  /// Adds the key and its dotted spellings to the object at `pointer`.
  void add(Json& object, const std::string& pointer, const std::string& key, const Json& value) {
    Json& own = object["properties"];
    const auto dot = key.find('.');
    const std::string first = key.substr(0, dot);
    const std::string inside = pointer + "/properties/" + first;
    if (dot == std::string::npos) {
      own[first] = value;
      return;
    }
    if (!own.contains(first)) own[first] = object_schema();
    add(own[first], inside, key.substr(dot + 1), value);
    const Json nested = own[first]["properties"];
    for (const auto& [name, schema] : nested.items()) {
      const std::string dotted = first + "." + name;
      if (own.contains(dotted)) continue;
      // Some validators do not follow a reference to a reference.
      own[dotted] = schema.contains("$ref") ? schema : reference(inside + "/properties/" + name);
    }
  }

  std::string at_;
  Json root_ = object_schema();
};

/// Returns the JSON pointer of a key in a Tree.
std::string pointer_to(const std::string& key) {
  std::string pointer = "/properties/" + key;
  for (size_t dot; (dot = pointer.find('.')) != std::string::npos;)
    pointer.replace(dot, 1, "/properties/");
  return pointer;
}

/// Returns the schema of an arm, which may set all keys outside `run:`.
Json arm_schema(const Json& file) {
  Json arm = object_schema();
  for (const auto& [name, schema] : file["properties"].items()) {
    if (name == "run" || name.starts_with("run.")) continue;
    arm["properties"][name] = schema.contains("$ref") ? schema : reference("/properties/" + name);
  }
  return arm;
}

/// Returns the schema of sweep.grid and sweep.zip: lists of values by key.
Json swept_schema() {
  Tree tree("/definitions/swept");
  for (const Field& field : fields())
    if ((field.flags & kOfSweep) == 0)
      tree.add(field.key, list_of(reference(pointer_to(field.key))));
  return tree.root();
}

Json sweep_value_schema(const SweepField& field) {
  if (field.spec.form.empty()) return key_schema(field);
  Json value;
  if (field.key == "sweep.lr") {
    const Json own = {
        {"type", "object"},
        {"properties", {{"own", {{"type", "string"}}}, {"times", list_of({{"type", "number"}})}}},
        {"required", Json::array({"own"})},
        {"additionalProperties", false}};
    value["anyOf"] = {{{"const", kWortsman}}, list_of(reference(pointer_to("optim.lr"))), own};
  } else if (field.key == "sweep.arms") {
    value = {{"type", "object"}, {"additionalProperties", reference("/definitions/arm")}};
    value["minProperties"] = 1;
  } else {
    value["allOf"] = {reference("/definitions/swept")};
  }
  value["description"] = field.help;
  return value;
}

}  // namespace

std::string config_schema() {
  Tree tree("");
  Json base = value_schema({std::vector<std::string>{}, {}});
  base["description"] = "Base files, relative to this file; later files override earlier ones.";
  tree.add("base", base);
  for (const Field& field : fields()) tree.add(field.key, key_schema(field));
  const Json arm = arm_schema(tree.root());
  for (const SweepField& field : sweep_fields()) tree.add(field.key, sweep_value_schema(field));
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                 {"title", "difftape configuration"}};
  schema.update(tree.root());
  schema["definitions"] = {{"arm", arm}, {"swept", swept_schema()}};
  return system::json_text(schema, 2) + "\n";
}

}  // namespace difftape::run
