#pragma once
// Numbers as text.

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

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

}  // namespace difftape::system
