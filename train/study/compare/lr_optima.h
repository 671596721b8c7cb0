#pragma once
// lr_optimum.csv: the learning rate at which each arm of each size does best, as runs found it. A
// committed one fixes the rates of later runs (`sweep.lr: {own: FILE}`) and which of them a claim
// compares (`learning_rates: FILE`).

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/study/compare/lr_curves.h"

namespace difftape::study {

inline constexpr const char* kLrOptimumFile = "lr_optimum.csv";

/// One line an arm and size that ran at several learning rates: arm (run.arm), model.d_model,
/// parameters, lr_star, its 95 % limits low and high, loss (nats per token, of the parabola),
/// seeds (those that chose it, between spaces), reason (why there is none). lr_star and limits have
/// three significant digits. Two curves of one arm and size, as of two tasks, have a reason each.
std::string lr_optima_csv(std::span<const LrCurve> curves);

/// An arm of a size in lr_optimum.csv.
struct OwnRate {
  std::string arm, d_model;
  double lr;                         ///< NaN: see reason
  std::vector<std::uint64_t> seeds;  ///< that chose it
  std::string reason;
};

/// The learning rates that a file gives arms of their own.
struct OwnRates {
  std::filesystem::path file;
  std::vector<OwnRate> rates;

  /// That of run.arm at model.d_model. Throws DataError if the file has none, or one without a
  /// learning rate, with its reason.
  const OwnRate& of(std::string_view arm, std::string_view d_model) const;
};

/// Throws MissingInput if the file is not there, and DataError if it is not such a file, a number
/// in it is none, or it names an arm and size twice.
OwnRates read_own_rates(const std::filesystem::path& file);

}  // namespace difftape::study
