#pragma once
// Numbers as text, and text as numbers.

#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace difftape::system {

/// The value; of every NaN the one without a sign, which prints as "nan". Processors make the
/// other one, "-nan", of 0 / 0.
inline double shown(double value) {
  return std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
}

/// A number, at least 0, with its thousands separated: 820224 -> "820,224".
std::string grouped(std::int64_t number);

/// A number with all its digits, which read back exactly; empty for NaN.
std::string csv_number(double value);

/// "881 GB", "4.2 GB", "37 MB": powers of 1000.
std::string describe_bytes(double value);

/// The number that is all of a text; nothing if it is none.
template <class T>
std::optional<T> read_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool all = error == std::errc() && end == text.data() + text.size();
  return all ? std::optional(value) : std::nullopt;
}

}  // namespace difftape::system
