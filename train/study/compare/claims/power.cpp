#include "train/study/compare/claims/power.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "train/stats/decision.h"

namespace difftape::study {

namespace {

/// The difference that is found with power kPower: by bisection.
double smallest_found(double error, double degrees, double level) {
  double low = 0, high = 100;
  while (high - low > 1e-6) {
    const double middle = (low + high) / 2;
    const double power = stats::two_sided_power(middle, error, degrees, level);
    (power < kPower ? low : high) = middle;
  }
  return high;
}

/// A difference on the axis as it is read; "-" if there is none.
std::string shown(const Claim& claim, double on_axis) {
  if (std::isnan(on_axis)) return "-";
  return claim.metric->scale == Scale::ratio ? fmt::format("x{:.3g}", std::exp(on_axis))
                                             : fmt::format("{:.3g}", on_axis);
}

}  // namespace

Power power_of(const Claim& claim, const ClaimsFile& file, Index seeds) {
  Power power{claim.planned_pairs()};
  if (power.pairs == std::vector<Index>{0}) power.pairs = {seeds};
  const bool sizes_known = claim.over == Over::no_sizes || !claim.seeds_of_size.empty();
  const bool decides = std::ranges::all_of(power.pairs, [](Index each) { return each > 1; });
  if (!sizes_known || claim.over == Over::slope || !decides) return power;
  double variance = 0, degrees = 0;  // of single differences 1: the mean over the sizes is taken
  for (const Index each : power.pairs) {
    variance += 1 / static_cast<double>(each);
    degrees += static_cast<double>(each - 1);
  }
  const double error = std::sqrt(variance) / static_cast<double>(power.pairs.size());
  const double level = first_level(file), margin = claim.margin_on_axis();
  power.half_width = stats::student_t_quantile(0.975, degrees) * error;
  if (claim.expects_difference()) power.found = smallest_found(error, degrees, level);
  if (std::isnan(claim.planned_sd) || std::isnan(margin)) return power;
  const double planned = error * claim.on_axis(claim.planned_sd);
  power.of_none = claim.expect == Expect::not_higher
                      ? stats::one_sided_power(margin, planned, degrees, level)
                      : stats::equivalence_power(margin, planned, degrees, level);
  return power;
}

system::Table power_table(const ClaimsFile& file, Index seeds,
                          std::span<const std::string> elsewhere) {
  system::Table table{{{"", "claim", true},
                       {"", "endpoint", true},
                       {"", "seeds"},
                       {"", "SD"},
                       {"", "95 % +-"},
                       {"", "found at power .8"},
                       {"no difference", "margin"},
                       {"no difference", "power"}},
                      {}};
  for (const Claim& claim : file.claims) {
    const bool here = std::ranges::find(elsewhere, claim.id) == elsewhere.end();
    if (!here || claim.endpoint == Rank::exploratory) continue;
    const Power power = power_of(claim, file, seeds);
    const double sd = std::isnan(claim.planned_sd) ? kNone : claim.on_axis(claim.planned_sd);
    const auto size = [&](double in_sd) {
      return std::isnan(sd) && !std::isnan(in_sd) ? fmt::format("{:.2f} SD", in_sd)
                                                  : shown(claim, in_sd * sd);
    };
    table.rows.push_back({claim.id, std::string(to_string(claim.endpoint)),
                          fmt::format("{}", fmt::join(power.pairs, " + ")), shown(claim, sd),
                          size(power.half_width), size(power.found),
                          shown(claim, claim.margin_on_axis()),
                          std::isnan(power.of_none) ? "-" : fmt::format("{:.2f}", power.of_none)});
  }
  return table;
}

std::string power_text(const ClaimsFile& file, Index seeds, std::size_t width,
                       std::span<const std::string> elsewhere) {
  const system::Table table = power_table(file, seeds, elsewhere);
  const std::string others =
      elsewhere.empty() ? ""
                        : system::wrapped(fmt::format("Of other sweeps, no run here matches their "
                                                      "'where': {}.",
                                                      fmt::join(elsewhere, ", ")),
                                          width, "");
  if (table.rows.empty())
    return fmt::format("{} has no primary claim{}: all are exploratory\n{}", file.path,
                       elsewhere.empty() ? "" : " about these runs", others);
  return to_text(table) +
         system::wrapped(
             fmt::format("Level {:.3g}, that of the first step of the correction. SD: of the "
                         "differences of single seeds, as planned. No difference: how often its "
                         "absence is found, within the margin or not above it.",
                         first_level(file)),
             width, "") +
         others;
}

}  // namespace difftape::study
