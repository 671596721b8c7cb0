#include "train/study/compare/claims/power.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "train/stats/decision.h"

namespace difftape::study {

namespace {

/// The difference, in standard deviations, that is found with power kPower: by bisection.
double smallest_found(Index seeds, double level) {
  double low = 0, high = 100;
  while (high - low > 1e-6) {
    const double middle = (low + high) / 2;
    (stats::paired_power(middle, 1, seeds, level) < kPower ? low : high) = middle;
  }
  return high;
}

/// What a p value must not exceed to decide after so many seeds; 0 if none decides yet. With looks,
/// at the last one they reach.
double level_after(const ClaimsFile& file, Index seeds) {
  if (!file.looks) return seeds < planned_seeds(file) ? 0 : worst_level(file);
  if (seeds < stats::kLooks.front().pairs) return 0;
  double low = -50, high = 0;  // logarithms
  while (high - low > 1e-6) {
    const double middle = (low + high) / 2;
    (stats::sequential_p(std::exp(middle), seeds) <= worst_level(file) ? low : high) = middle;
  }
  return std::exp(low);
}

std::string shown(const Claim& claim, double on_axis) {
  return claim.metric->scale == Scale::ratio ? fmt::format("x{:.3g}", std::exp(on_axis))
                                             : fmt::format("{:.3g}", on_axis);
}

std::string share(double power) { return std::isnan(power) ? "-" : fmt::format("{:.2f}", power); }

bool asks_difference(const Claim& claim) {
  return claim.expect == Expect::lower || claim.expect == Expect::higher;
}

/// How often the claim's own question is answered if the true difference is `effect`; NaN without a
/// plan or without what the question needs.
double own_power(const Claim& claim, double effect, double spread, Index seeds, double level) {
  const double margin = claim.margin_on_axis();
  if (std::isnan(effect)) return kNone;
  if (asks_difference(claim)) return stats::paired_power(effect, spread, seeds, level);
  if (claim.expect == Expect::not_higher)
    return stats::one_sided_power(margin - effect, spread, seeds, level);
  return stats::equivalence_power(margin, spread, seeds, level, effect);
}

/// The same of the margin, if there is no difference: that it is within, or not above.
double margin_power(const Claim& claim, double spread, Index seeds, double level) {
  const double margin = claim.margin_on_axis();
  if (std::isnan(margin)) return kNone;
  if (claim.expect == Expect::not_higher)
    return stats::one_sided_power(margin, spread, seeds, level);
  return stats::equivalence_power(margin, spread, seeds, level);
}

std::vector<std::string> row_of(const Claim& claim, const ClaimsFile& file, Index seeds) {
  const double level = level_after(file, seeds);
  // The absence of a difference is found when all seeds have ended.
  const double level_of_none = seeds < planned_seeds(file) ? 0 : worst_level(file);
  const bool planned = !std::isnan(claim.planned_spread);
  const double spread = planned ? claim.on_axis(claim.planned_spread) : 1;
  const bool has_effect = planned && !std::isnan(claim.planned_effect);
  const double effect = has_effect ? claim.on_axis(claim.planned_effect) : kNone;
  const double found = level > 0 ? smallest_found(seeds, level) * spread : kNone;
  const auto power_of = [&](Index n) {
    return own_power(claim, effect, spread, n, worst_level(file));
  };
  const double own_level = asks_difference(claim) ? level : level_of_none;
  const Index needed = has_effect ? stats::fewest_pairs(power_of, kPower) : 0;
  const std::string size = planned ? shown(claim, found) : fmt::format("{:.2f} SD", found);
  return {claim.id,
          std::string(to_string(claim.endpoint)),
          planned ? shown(claim, spread) : "-",
          asks_difference(claim) && level > 0 ? size : "-",
          has_effect ? shown(claim, effect) : "-",
          share(!has_effect     ? kNone
                : own_level > 0 ? own_power(claim, effect, spread, seeds, own_level)
                                : 0),
          needed > 0 ? fmt::to_string(needed) : "-",
          std::isnan(claim.margin) ? "-" : shown(claim, claim.margin_on_axis()),
          share(!planned || std::isnan(claim.margin) ? kNone
                : level_of_none > 0 ? margin_power(claim, spread, seeds, level_of_none)
                                    : 0)};
}

}  // namespace

system::Table power_table(const ClaimsFile& file, Index seeds,
                          std::span<const std::string> elsewhere) {
  system::Table table{{{"", "claim", true},
                       {"", "endpoint", true},
                       {"", "SD"},
                       {"", "found at power .8"},
                       {"planned", "effect"},
                       {"planned", "power"},
                       {"planned", "seeds for .8"},
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
             fmt::format(
                 "{} seeds, level {:.3g}: that of the worst step of Holm's correction{}. SD: "
                 "of the differences of single seeds, as planned. No difference: how often "
                 "its absence is found, within the margin or not above it{}.",
                 seeds, level_after(file, seeds), file.looks ? " at the look reached" : "",
                 seeds < planned_seeds(file)
                     ? fmt::format(", which waits for all {}", planned_seeds(file))
                     : ""),
             width, "") +
         others;
}

Index planned_seeds(const ClaimsFile& file) {
  if (file.looks) return stats::kLooks.back().pairs;
  return std::ssize(file.seeds);
}

Index seeds_to_decide(const ClaimResult& result) {
  const double level = result.level;
  const stats::PairedDifference& paired = result.measured.paired;
  const double spread = paired.error * std::sqrt(static_cast<double>(paired.pairs));
  const double margin = result.claim->margin_on_axis(), found = paired.difference.mean;
  if (std::isnan(spread)) return 0;
  if (spread == 0) return 1 + static_cast<Index>(std::ceil(std::log2(1 / level)));
  const auto fewest = [](const std::function<double(Index)>& power) {
    return stats::fewest_pairs(power, kPower);
  };
  const Index differs = fewest([&](Index n) {
    switch (result.claim->expect) {
      case Expect::equivalent:
        return stats::one_sided_power(std::abs(found) - margin, spread, n, level / 2);
      case Expect::not_higher:
        return stats::one_sided_power(std::abs(found - margin), spread, n, level);
      case Expect::lower:
      case Expect::higher:
        break;
    }
    return stats::paired_power(found, spread, n, level);
  });
  const bool asks_within = !std::isnan(margin) && result.claim->expect != Expect::not_higher;
  const Index within = asks_within ? fewest([&](Index n) {
    return stats::equivalence_power(margin, spread, n, level, found);
  })
                                   : 0;
  const Index needed = differs == 0 ? within : within == 0 ? differs : std::min(differs, within);
  return needed == 0 ? 0 : std::max(needed, paired.pairs + 1);
}

}  // namespace difftape::study
