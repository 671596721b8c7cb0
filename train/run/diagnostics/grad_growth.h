#pragma once
// Whether the gradient norm grows or varies late in training, as the V2 article says of V1. Norms
// are those of the steps 1, 2, ... so far, before clipping; those that are not finite are left out.

#include <span>

namespace difftape::run {

/// Growth exponent: the slope of the least-squares line of log(norm) against log(step) over the
/// second half of the steps, those s of n with 2 s > n; a norm that grows like step^a has exponent
/// a. NaN with fewer than two steps that have a norm above 0.
double grad_norm_growth(std::span<const double> norms);

/// Population variance over the last quarter of the steps, rounded up; NaN of none.
double grad_norm_late_variance(std::span<const double> norms);

}  // namespace difftape::run
