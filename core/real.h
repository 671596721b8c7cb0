#pragma once
// The one number type of the library, and sizes. The same sources are built twice: `float` for
// training (difftape_f32) and `double` for proof (difftape_f64).

#include <cstddef>
#include <cstdint>
#include <limits>

namespace difftape {

using std::size_t;

#ifdef DIFFTAPE_F64
using real = double;
#else
using real = float;
#endif

/// Sizes and positions, counted in elements.
using Index = std::int64_t;

/// A number that is not known, or that cannot be computed.
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// "f32" or "f64": how a precision is called in logs, files and on the command line.
constexpr const char* kRealName = sizeof(real) == 8 ? "f64" : "f32";

/// The smallest number of parts of size b > 0 that hold a >= 0.
constexpr Index ceil_div(Index a, Index b) { return (a + b - 1) / b; }
/// The smallest multiple of b > 0 that is at least a >= 0.
constexpr Index round_up(Index a, Index b) { return ceil_div(a, b) * b; }

}  // namespace difftape
