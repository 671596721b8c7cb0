#pragma once
// Formats and parses numbers.

#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace difftape::system {

/// Returns the value, with the sign of a NaN removed so that it prints as "nan". Processors compute
/// 0 / 0 as "-nan".
inline double shown(double value) {
  return std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
}

/// Formats a number >= 0 with separated thousands: 820224 -> "820,224".
std::string grouped(std::int64_t number);

/// Formats a number with all its digits, so that reading it is exact; empty for NaN.
std::string csv_number(double value);

/// Formats bytes in powers of 1000: "881 GB", "4.2 GB", "37 MB".
std::string describe_bytes(double value);

/// Parses a string that is a number as a whole; returns nothing for other strings.
template <class T>
std::optional<T> read_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool all = error == std::errc() && end == text.data() + text.size();
  return all ? std::optional(value) : std::nullopt;
}

}  // namespace difftape::system
