#include "train/system/json.h"

#include <limits>
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

namespace {

constexpr int kDeepest = 64;  // copying and printing recurse

/// Whether lists and objects lie within each other more than kDeepest deep, whatever else the text
/// is.
bool is_too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size() && depth <= kDeepest; ++i) {
    const char c = text[i];
    if (in_string && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string) {
      depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    }
  }
  return depth > kDeepest;
}

void require_shallow(std::string_view text) {
  if (!is_too_deep(text)) return;
  throw nlohmann::json::parse_error::create(
      101, 0, fmt::format("nested more than {} deep", kDeepest), nullptr);
}

/// Sees the keys of a text, in time that is linear in their number.
class KeyCheck : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool start_object(std::size_t) override {
    open_.emplace_back();
    return true;
  }
  bool key(std::string& name) override {
    if (!open_.back().insert(name).second)
      throw DataError(fmt::format("the key '{}' is there twice", name));
    return true;
  }
  bool end_object() override {
    open_.pop_back();
    return true;
  }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override {
    return false;  // the parser that follows says what is wrong
  }

 private:
  std::vector<std::set<std::string>> open_;  ///< the keys so far of each object that is open
};

}  // namespace

nlohmann::ordered_json parse_json(std::string_view text) {
  require_shallow(text);
  return nlohmann::ordered_json::parse(text);
}

nlohmann::ordered_json json_or_discarded(std::string_view text) {
  if (is_too_deep(text)) return nlohmann::ordered_json::value_t::discarded;
  return nlohmann::ordered_json::parse(text, nullptr, false);
}

nlohmann::json parse_json_without_duplicates(std::string_view text) {
  require_shallow(text);
  KeyCheck keys;
  nlohmann::json::sax_parse(text, &keys);
  return nlohmann::json::parse(text);
}

namespace {

template <class Json>
std::int64_t whole_number_of(const Json& json) {
  const bool fits = json.is_number_integer() && (!json.is_number_unsigned() ||
                                                 json <= std::numeric_limits<std::int64_t>::max());
  if (!fits) throw DataError(fmt::format("{} is no integer of 64 bits", text_of(json, -1)));
  return json.template get<std::int64_t>();
}

}  // namespace

std::int64_t whole_number(const nlohmann::ordered_json& json) { return whole_number_of(json); }

std::int64_t whole_number(const nlohmann::json& json) { return whole_number_of(json); }

std::string json_text(const nlohmann::ordered_json& json, int indent) {
  return text_of(json, indent);
}

std::string json_text(const nlohmann::json& json, int indent) { return text_of(json, indent); }

}  // namespace difftape::system
