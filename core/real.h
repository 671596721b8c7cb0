#pragma once
// The number type of the library. The same sources are built twice: with `float` for training
// (difftape_f32) and with `double` for proofs (difftape_f64).

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

/// A value that is unknown or cannot be computed.
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The name of the precision in logs, files and options.
constexpr const char* kRealName = sizeof(real) == 8 ? "f64" : "f32";

/// Returns a / b rounded up, a >= 0, b > 0.
constexpr Index ceil_div(Index a, Index b) { return (a + b - 1) / b; }
/// Returns the smallest multiple of b > 0 that is at least a >= 0.
constexpr Index round_up(Index a, Index b) { return ceil_div(a, b) * b; }

}  // namespace difftape
