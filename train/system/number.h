#pragma once
// Numbers as they are shown.

#include <cmath>
#include <limits>

namespace difftape::system {

/// The value; of every NaN the one without a sign, which prints as "nan". Processors make the
/// other one, "-nan", of 0 / 0.
inline double shown(double value) {
  return std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
}

}  // namespace difftape::system
