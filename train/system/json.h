#pragma once
// Parses and prints JSON. The templates of nlohmann::json take seconds to compile; here they are
// compiled once.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace difftape::system {

/// Parses JSON and keeps the order of keys. Throws nlohmann::json::parse_error with line and
/// column. All three parsers reject JSON nested more than 64 levels deep.
nlohmann::ordered_json parse_json(std::string_view text);

/// Does the same, but returns a value that `is_discarded()` for invalid JSON.
nlohmann::ordered_json json_or_discarded(std::string_view text);

/// Parses JSON and sorts keys. Throws nlohmann::json::parse_error, and DataError if an object has a
/// key twice; other parsers would keep one of them.
nlohmann::json parse_json_without_duplicates(std::string_view text);

/// Returns a 64-bit integer. Throws DataError for other values; nlohmann::json would convert any
/// number, with undefined results beyond 64 bits.
std::int64_t integer_of(const nlohmann::ordered_json& json);
std::int64_t integer_of(const nlohmann::json& json);

/// Prints JSON on one line, or on several with `indent` >= 0. Bytes that are not UTF-8 become
/// U+FFFD.
std::string json_text(const nlohmann::ordered_json& json, int indent = -1);
std::string json_text(const nlohmann::json& json, int indent = -1);

}  // namespace difftape::system
