#include "train/system/json.h"

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "core/error.h"

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

nlohmann::json parse_json_without_duplicates(std::string_view text) {
  using Event = nlohmann::json::parse_event_t;
  std::vector<std::set<std::string>> open;  // the keys so far of each object that is open
  return nlohmann::json::parse(text, [&open](int, Event event, nlohmann::json& parsed) {
    if (event == Event::object_start) open.emplace_back();
    if (event == Event::object_end) open.pop_back();
    if (event == Event::key && !open.back().insert(parsed.get<std::string>()).second)
      throw DataError(fmt::format("the key '{}' is there twice", parsed.get<std::string>()));
    return true;
  });
}

std::string json_text(const nlohmann::ordered_json& json, int indent) {
  return text_of(json, indent);
}

std::string json_text(const nlohmann::json& json, int indent) { return text_of(json, indent); }

}  // namespace difftape::system
