#pragma once
// What `analyze snr` measured, for people and for programs.

#include <filesystem>

#include "train/app/analyze/snr.h"

namespace difftape::app {

/// What was measured, in words, and tables of the results: a row for each amplitude, and one for
/// each correlation with crossovers and the largest gain.
std::string describe_snr(const SnrResult& result);

/// The first line of the CSV file.
inline constexpr const char* kSnrHeader =
    "correlation,noise,lambda,snr,snr_low,snr_high,gain,gain_low,gain_high";

/// One line for each correlation, amplitude and lambda. Throws OutputError.
void write_snr_csv(const std::filesystem::path& path, const SnrResult& result);

/// /correlation, /noise, /lambda, /{snr,gain}/{value,low,high} of (correlations, amplitudes,
/// lambdas), /crossover/{softmax,differential} by correlation, and the attribute `request` (JSON).
/// Throws OutputError.
void write_snr_h5(const std::filesystem::path& path, const SnrResult& result);

}  // namespace difftape::app
