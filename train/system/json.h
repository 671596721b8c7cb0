#pragma once
// JSON as text. The parser and the printer of nlohmann::json are templates that cost every source
// that uses them a second or two of compiling: here they are compiled once.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace difftape::system {

/// The keys keep their order. Throws nlohmann::json::parse_error with line and column; what is
/// nested more than 64 deep is not JSON here, nor in the next two.
nlohmann::ordered_json parse_json(std::string_view text);

/// The same, but what is not JSON is a value that `is_discarded()`.
nlohmann::ordered_json json_or_discarded(std::string_view text);

/// Keys in alphabetical order. Throws DataError for a key that an object has twice, of which other
/// parsers take one, and nlohmann::json::parse_error.
nlohmann::json parse_json_without_duplicates(std::string_view text);

/// An integer, where that of nlohmann::json takes any number, and one too large for 64 bits has
/// no defined result. Throws DataError.
std::int64_t whole_number(const nlohmann::ordered_json& json);
std::int64_t whole_number(const nlohmann::json& json);

/// On one line, or with `indent` >= 0 on many. Bytes that are not UTF-8 become U+FFFD.
std::string json_text(const nlohmann::ordered_json& json, int indent = -1);
std::string json_text(const nlohmann::json& json, int indent = -1);

}  // namespace difftape::system
