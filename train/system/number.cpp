#include "train/system/number.h"

#include <fmt/format.h>

namespace difftape::system {

std::string grouped(std::int64_t number) { return fmt::format("{}", fmt::group_digits(number)); }

std::string csv_number(double value) { return std::isnan(value) ? "" : fmt::to_string(value); }

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

}  // namespace difftape::system
