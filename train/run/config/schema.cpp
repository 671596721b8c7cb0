#include <cmath>
#include <nlohmann/json.hpp>

#include "train/run/config/fields.h"
#include "train/run/config/writer.h"

namespace difftape::run {
namespace {

using Json = nlohmann::ordered_json;

Json limit(double value, bool whole) {
  return whole ? Json(static_cast<Index>(value)) : Json(value);
}

/// Schema of one item: of the value itself, or of each item of a list.
Json item_schema(const char* type, const ValueRule& rule) {
  const bool whole = std::string_view(type) == "integer";
  Json item = {{"type", type}};
  if (!rule.words.empty()) item["enum"] = rule.words;
  // `true` in YAML is a boolean to an editor and the word "true" to the reader.
  const auto boolean = std::ranges::find(rule.words, "true");
  if (boolean != rule.words.end()) {
    item.erase("type");
    item["enum"].insert(item["enum"].end(), {true, false});
  }
  if (std::isfinite(rule.min)) {
    item[rule.above_min ? "exclusiveMinimum" : "minimum"] = limit(rule.min, whole);
  }
  if (std::isfinite(rule.max)) {
    item[rule.below_max ? "exclusiveMaximum" : "maximum"] = limit(rule.max, whole);
  }
  return item;
}

Json value_schema(const ValueSpec& spec) {
  constexpr const char* kTypes[] = {"boolean", "integer", "number", "string",
                                    "integer", "number",  "string"};
  Json item = item_schema(kTypes[spec.initial.index()], spec.rule);
  if (spec.initial.index() < 4) return item;
  Json list = {{"type", "array"}, {"items", item}};
  if (spec.length != 0) list["minItems"] = list["maxItems"] = spec.length;
  // One text may stand alone.
  if (std::holds_alternative<std::vector<std::string>>(spec.initial)) {
    return {{"anyOf", {item, list}}};
  }
  return list;
}

Json object_schema() {
  return {{"type", "object"}, {"additionalProperties", false}, {"properties", Json::object()}};
}

}  // namespace

std::string config_schema() {
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "difftape configuration"}};
  schema.update(object_schema());
  Json base = value_schema({std::vector<std::string>{}, {}});
  base["description"] = "Files this one builds on, relative to it; later ones win.";
  schema["properties"]["base"] = base;
  for (const Field& field : fields()) {
    Json* section = &schema;
    size_t begin = 0;
    for (size_t dot; (dot = field.key.find('.', begin)) != std::string::npos; begin = dot + 1) {
      section = &(*section)["properties"][field.key.substr(begin, dot - begin)];
      if (section->is_null()) *section = object_schema();
    }
    Json value = value_schema(field.spec);
    value["default"] = std::visit([](const auto& v) { return Json(v); }, field.spec.initial);
    value["description"] =
        field.sentence + (field.unit.empty() ? "" : " Unit: " + field.unit + ".");
    (*section)["properties"][field.key.substr(begin)] = value;
  }
  return schema.dump(2) + "\n";
}

}  // namespace difftape::run
