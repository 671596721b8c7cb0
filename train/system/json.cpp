#include "train/system/json.h"

#include <nlohmann/json.hpp>

namespace difftape::system {

namespace {

template <class Json>
std::string text_of(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

nlohmann::ordered_json parse_json(std::string_view text) {
  return nlohmann::ordered_json::parse(text);
}

nlohmann::ordered_json json_or_discarded(std::string_view text) {
  return nlohmann::ordered_json::parse(text, nullptr, false);
}

std::string json_text(const nlohmann::ordered_json& json, int indent) {
  return text_of(json, indent);
}

std::string json_text(const nlohmann::json& json, int indent) { return text_of(json, indent); }

}  // namespace difftape::system
