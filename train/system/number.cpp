#include "train/system/number.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace difftape::system {

std::string number(double value, fmt::format_string<double&> format, const char* nan) {
  return std::isnan(value) ? nan : fmt::format(format, value);
}

std::string json_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return fmt::to_string(value);
}

std::string csv_number(double value) { return std::isnan(value) ? "" : fmt::to_string(value); }

std::string yaml_number(double value) {
  std::string text = fmt::to_string(value);
  const auto exponent = text.find('e');
  if (exponent != std::string::npos && text.find('.') == std::string::npos)
    text.insert(exponent, ".0");
  return text;
}

std::string scientific_number(double value) {
  std::array<char, 32> text;
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific);
  return {text.data(), end.ptr};
}

std::string grouped(std::int64_t number) { return fmt::format("{}", fmt::group_digits(number)); }

std::string short_number(double value, int digits) {
  const double size = std::abs(value);
  if (value == 0 || (size >= 0.01 && size < 1e6)) {
    return size >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.{}g}", value, digits);
  }
  std::string text = fmt::format("{:.{}e}", value, digits - 1);
  const std::size_t exponent = text.find('e');
  if (exponent == std::string::npos) return text;  // not finite
  std::string mantissa = text.substr(0, exponent), power = text.substr(exponent + 1);
  if (mantissa.find('.') != std::string::npos) {
    mantissa.erase(mantissa.find_last_not_of('0') + 1);
    if (mantissa.back() == '.') mantissa.pop_back();
  }
  return fmt::format("{}e{}", mantissa, std::stoi(power));
}

std::string describe_bytes(double value) {
  const char* unit = "B";
  for (const char* next : {"kB", "MB", "GB", "TB", "PB", "EB"}) {
    if (value < 999.5) break;
    value /= 1000;
    unit = next;
  }
  return value < 9.95 && unit[0] != 'B' ? fmt::format("{:.1f} {}", value, unit)
                                        : fmt::format("{:.0f} {}", value, unit);
}

std::string describe_duration(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  const auto total = std::llround(std::max(seconds, 0.0));
  if (total < 60) return fmt::format("{}s", total);
  if (total < 3600) return fmt::format("{}m{:02}s", total / 60, total % 60);
  return fmt::format("{}h{:02}m", total / 3600, total / 60 % 60);
}

}  // namespace difftape::system
