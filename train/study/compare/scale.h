#pragma once
// How two runs are compared: the axis on which their numbers differ.

#include <span>

#include "core/names.h"

namespace difftape::study {

/// By their difference; by their ratio, for what is positive and spread over decades; or, for
/// counts, whose variance grows with their mean, by the difference of their square roots.
enum class Scale { difference, ratio, root };

/// The number on the axis on which it is compared: itself, its logarithm or its square root.
double on_scale(double value, Scale scale);
/// Back from there.
double from_scale(double value, Scale scale);

/// The mean of numbers on the axis, as it is read: of ratios the geometric one; of counts that of
/// the counts, not of their roots.
double mean_from_scale(std::span<const double> values, Scale scale);

/// What two numbers are compared by: "difference", "ratio", "difference of square roots".
const char* what_differs(Scale scale);

}  // namespace difftape::study

namespace difftape {

/// The axis, as verdicts.csv calls it.
template <>
inline constexpr auto kNames<study::Scale> =
    std::to_array<Named<study::Scale>>({{"linear", study::Scale::difference},
                                        {"log", study::Scale::ratio},
                                        {"root", study::Scale::root}});

}  // namespace difftape
