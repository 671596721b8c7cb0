#pragma once
// The cells of a contrast: the runs of one arm that count for a claim, with one value per seed.

#include <fmt/format.h>

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "train/study/compare/claims/claims_file.h"
#include "train/study/compare/row.h"

namespace difftape::study {

using Runs = std::vector<const Row*>;

/// Thrown with the reason if a claim cannot be measured: "no run of v2 logged attn/sink_rate".
struct NoNumbers : std::runtime_error {
  explicit NoNumbers(const std::string& why) : std::runtime_error(why) {}
  template <class... Args>
  NoNumbers(fmt::format_string<Args...> text, Args&&... args)
      : std::runtime_error(fmt::format(text, std::forward<Args>(args)...)) {}
};

/// Returns whether a configuration, given as a function of its keys, matches a claim's `where`.
bool matches(const Regime& where,
             const std::function<std::string(const std::string& key)>& value_of);

/// Returns the runs of an arm (run.arm) that match `where`. Throws NoNumbers if there are none.
Runs runs_of(const std::string& arm, const Regime& where, std::span<const Row* const> runs);

/// Returns whether a run is complete and has one of the seeds; empty `seeds` accept any.
bool counts(const Row& run, const Seeds& seeds);

/// Returns "11..18" for three or more consecutive seeds, else "11, 13".
std::string seeds_text(const Seeds& seeds);

/// The complete runs that count, by seed, and by learning rate or multiple of the arm's own.
struct ClaimCell {
  std::string arm;
  Runs runs;
  std::map<std::uint64_t, std::map<double, const Row*>> by_seed = {};
  double own = kNone;  ///< the arm's own learning rate; NaN without

  std::vector<double> rates() const;  ///< ascending
  /// Returns the runs of a seed at all of these rates; nothing if one is missing.
  Runs at(std::uint64_t seed, const std::vector<double>& rates) const;
};

/// Selects the runs of a term. Throws NoNumbers if none is complete, if they differ in more than
/// learning rate and seed, if two have one seed and rate, or if a rate of the arm's own is missing.
ClaimCell make_cell(const Term& term, const Claim& claim, const ClaimsFile& file,
                    const Seeds& seeds, std::span<const Row* const> runs);

/// Throws NoNumbers if two cells have other tasks, or one of them did not log the metric.
void require_comparable(const ClaimCell& a, const ClaimCell& b, const Quantity& metric);

/// Returns the value of one seed, on the axis: of its runs at ascending rates, the mean, the
/// penalty or the sensitivity (Quantity::over_rates). Throws NoNumbers if a run has no value.
double value_of(const Runs& runs, const Quantity& metric);

}  // namespace difftape::study
