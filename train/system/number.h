#pragma once
// Formats and parses numbers.

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace difftape::system {

/// Formats a number with a format string of fmt such as "{:.4f}". Every NaN becomes `nan`, whatever
/// its sign.
std::string number(double value, fmt::format_string<double&> format, const char* nan = "nan");

// Numbers with all their digits, which read back exactly.

/// Formats a number for metrics.jsonl, or "NaN", "Infinity", "-Infinity".
std::string json_number(double value);
/// Formats a number for a CSV file; empty for NaN.
std::string csv_number(double value);
/// Formats a number for a YAML file: "1.0e-05", because YAML 1.1 takes "1e-05" for a string.
std::string yaml_number(double value);
/// Formats a number in scientific notation: "1e-03".
std::string scientific_number(double value);

// Numbers for people.

/// Formats a number >= 0 with separated thousands: 820224 -> "820,224".
std::string grouped(std::int64_t number);
/// Formats a number with at most `digits` significant digits: "0.03", "3e-3", "120000", "1.2e6".
std::string short_number(double value, int digits = 4);
/// Formats bytes in powers of 1000: "881 GB", "4.2 GB", "37 MB".
std::string describe_bytes(double value);
/// Formats a duration: "45s", "1m12s" or "2h05m"; "-" if it is not finite.
std::string describe_duration(double seconds);

/// Parses a string that consists of exactly one number; returns nothing for other strings.
template <class T>
std::optional<T> read_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool all = error == std::errc() && end == text.data() + text.size();
  return all ? std::optional(value) : std::nullopt;
}

}  // namespace difftape::system
