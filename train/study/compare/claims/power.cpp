#include "train/study/compare/claims/power.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "train/stats/decision.h"

namespace difftape::study {

namespace {

/// The standard error to expect, in standard deviations of single differences.
struct Expected {
  double error, degrees;
};

/// Of pairs at one size or at several, whose mean is taken.
std::optional<Expected> expected_error(const std::vector<Index>& pairs) {
  double variance = 0, degrees = 0;
  for (const Index each : pairs) {
    if (each < 2) return std::nullopt;
    variance += 1 / static_cast<double>(each);
    degrees += static_cast<double>(each - 1);
  }
  const auto sizes = static_cast<double>(pairs.size());
  return Expected{std::sqrt(variance) / sizes, degrees};
}

/// The difference that is found with power kPower: by bisection.
double smallest_found(const Expected& expected, double level) {
  double low = 0, high = 100;
  while (high - low > 1e-6) {
    const double middle = (low + high) / 2;
    const double power = stats::two_sided_power(middle, expected.error, expected.degrees, level);
    (power < kPower ? low : high) = middle;
  }
  return high;
}

std::string shown(const Claim& claim, double on_axis) {
  return claim.metric->scale == Scale::ratio ? fmt::format("x{:.3g}", std::exp(on_axis))
                                             : fmt::format("{:.3g}", on_axis);
}

/// How often the absence of a difference is found where there is none.
double power_of_none(const Claim& claim, double error, double degrees, double level) {
  const double margin = claim.margin_on_axis();
  return claim.expect == Expect::not_higher
             ? stats::one_sided_power(margin, error, degrees, level)
             : stats::equivalence_power(margin, error, degrees, level);
}

std::vector<std::string> row_of(const Claim& claim, const ClaimsFile& file, Index seeds) {
  std::vector<Index> pairs = claim.planned_pairs();
  if (pairs == std::vector<Index>{0}) pairs = {seeds};
  const bool sizes_known = claim.over == Over::no_sizes || !claim.seeds_of_size.empty();
  const auto expected =
      sizes_known && claim.over != Over::slope ? expected_error(pairs) : std::nullopt;
  const bool planned = !std::isnan(claim.planned_sd), has_margin = !std::isnan(claim.margin);
  const double sd = planned ? claim.on_axis(claim.planned_sd) : 1, level = first_level(file);
  const auto size = [&](double in_sd) {
    return planned ? shown(claim, in_sd * sd) : fmt::format("{:.2f} SD", in_sd);
  };
  std::vector<std::string> row{claim.id, std::string(to_string(claim.endpoint)),
                               fmt::format("{}", fmt::join(pairs, " + ")),
                               planned ? shown(claim, sd) : "-"};
  if (!expected) {
    row.insert(row.end(), {"-", "-", has_margin ? shown(claim, claim.margin_on_axis()) : "-", "-"});
    return row;
  }
  const auto [error, degrees] = *expected;
  const bool finds = claim.expect == Expect::lower || claim.expect == Expect::higher;
  row.push_back(size(stats::student_t_quantile(0.975, degrees) * error));
  row.push_back(finds ? size(smallest_found(*expected, level)) : "-");
  row.push_back(has_margin ? shown(claim, claim.margin_on_axis()) : "-");
  row.push_back(planned && has_margin
                    ? fmt::format("{:.2f}", power_of_none(claim, error * sd, degrees, level))
                    : "-");
  return row;
}

}  // namespace

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
    if (here && claim.endpoint != Rank::exploratory)
      table.rows.push_back(row_of(claim, file, seeds));
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
