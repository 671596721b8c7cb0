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

constexpr int kDeepest = 64;  // copying and printing recurse

/// Checks depth and keys before JSON is parsed, in linear time. The parser's own callbacks would
/// take quadratic time: they visit a whole object whenever one of its values ends.
class Check : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Check(bool unique_keys) : unique_keys_(unique_keys) {}
  bool start_object(std::size_t) override {
    keys_.emplace_back();
    return descend();
  }
  bool key(std::string& name) override {
    throw_if<DataError>(unique_keys_ && !keys_.back().insert(name).second,
                        "the key '{}' appears twice", name);
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    return end_array();
  }
  bool start_array(std::size_t) override { return descend(); }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override {
    return false;  // the parser that follows reports the error
  }

 private:
  bool descend() {
    if (++depth_ <= kDeepest) return true;
    throw nlohmann::json::parse_error::create(
        101, 0, fmt::format("nested more than {} levels deep", kDeepest), nullptr);
  }

  bool unique_keys_;
  int depth_ = 0;
  std::vector<std::set<std::string>> keys_;  ///< the keys so far of each open object
};

/// Throws parse_error for JSON that is nested too deep and, if `unique_keys`, DataError if an
/// object has a key twice.
void check(std::string_view text, bool unique_keys) {
  Check seen(unique_keys);
  nlohmann::json::sax_parse(text, &seen);
}

}  // namespace

nlohmann::ordered_json parse_json(std::string_view text) {
  check(text, false);
  return nlohmann::ordered_json::parse(text);
}

nlohmann::ordered_json json_or_discarded(std::string_view text) {
  try {
    check(text, false);
  } catch (const nlohmann::json::parse_error&) {
    return nlohmann::ordered_json::value_t::discarded;
  }
  return nlohmann::ordered_json::parse(text, nullptr, false);
}

nlohmann::json parse_json_without_duplicates(std::string_view text) {
  check(text, true);
  return nlohmann::json::parse(text);
}

namespace {

template <class Json>
std::int64_t checked_integer(const Json& json) {
  const bool fits = json.is_number_integer() && (!json.is_number_unsigned() ||
                                                 json <= std::numeric_limits<std::int64_t>::max());
  throw_if<DataError>(!fits, "{} is not a 64-bit integer", text_of(json, -1));
  return json.template get<std::int64_t>();
}

}  // namespace

std::int64_t integer_of(const nlohmann::ordered_json& json) { return checked_integer(json); }

std::int64_t integer_of(const nlohmann::json& json) { return checked_integer(json); }

std::string json_text(const nlohmann::ordered_json& json, int indent) {
  return text_of(json, indent);
}

std::string json_text(const nlohmann::json& json, int indent) { return text_of(json, indent); }

}  // namespace difftape::system
