#include "train/study/compare/claims/measure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "train/stats/descriptive.h"
#include "train/system/number.h"

namespace difftape::study {

namespace {

constexpr const char* kSize = "model.d_model";

/// The contrast at one size.
struct Contrast {
  std::string arm, reference;
  Seeds seeds;
  std::vector<double> a, b;
  std::string where;
  double parameters = kNone;  ///< of the reference
  bool stated_before = true;
  std::string none;  ///< why there is nothing to compare; empty if there is

  std::vector<double> gaps() const {
    std::vector<double> gaps;
    for (std::size_t i = 0; i < a.size(); ++i) gaps.push_back(a[i] - b[i]);
    return gaps;
  }
};

/// Returns the learning rates, or multiples of their own, that two cells have.
std::vector<double> shared_rates(const ClaimCell& a, const ClaimCell& b, const Quantity& metric) {
  const std::vector<double> of_a = a.rates(), of_b = b.rates();
  std::vector<double> shared;
  std::ranges::set_intersection(of_a, of_b, std::back_inserter(shared));
  if (shared.empty())
    throw NoNumbers("{} and {} have no common learning rate ({:g} and {:g})", a.arm, b.arm,
                    fmt::join(of_a, ", "), fmt::join(of_b, ", "));
  if (metric.over_rates != OverRates::mean && shared.size() < 2)
    throw NoNumbers("{} needs at least two learning rates, but there is only {:g}", metric.label,
                    shared.front());
  return shared;
}

/// Returns "lr 0.001, 0.01", or for own rates "own and 4 x own lr (v2 0.0123, softmax 0.008)".
std::string rates_text(const Claim& claim, const ClaimCell& arm, const ClaimCell& reference,
                       const std::vector<double>& rates) {
  if (claim.own_lr.empty()) return fmt::format("lr {:g}", fmt::join(rates, ", "));
  std::vector<std::string> multiples;
  for (const double factor : claim.own_lr)
    multiples.push_back(factor == 1 ? "own" : fmt::format("{:g} x own", factor));
  return fmt::format("{} lr ({} {:g}, {} {:g})", fmt::join(multiples, " and "), arm.arm, arm.own,
                     reference.arm, reference.own);
}

std::string name_of_side(std::span<const ClaimCell> side, Scale scale) {
  if (side.size() == 1) return side[0].arm;
  const char* root = scale == Scale::root ? "root of " : "";
  return fmt::format("{}{} {} {}{}", root, side[0].arm, scale == Scale::ratio ? "over" : "less",
                     root, side[1].arm);
}

/// ClaimCells with the rates that each pair of them shares.
struct ClaimCells {
  std::vector<ClaimCell> cells;
  std::vector<std::vector<double>> rates;  ///< per cell
  std::string where;
};

ClaimCells cells_of(const Claim& claim, const ClaimsFile& file, const Seeds& seeds,
                    std::span<const Row* const> runs) {
  ClaimCells found;
  for (const Term& term : claim.terms)
    found.cells.push_back(make_cell(term, claim, file, seeds, runs));
  for (std::size_t i = 0; i < found.cells.size(); i += 2) {
    const ClaimCell &arm = found.cells[i], &reference = found.cells[i + 1];
    require_comparable(arm, reference, *claim.metric);
    found.rates.resize(i + 2, shared_rates(arm, reference, *claim.metric));
    const std::string where = rates_text(claim, arm, reference, found.rates[i]);
    if (i > 0 && where != found.where) {
      if (claim.own_lr.empty() && claim.terms[i].where == claim.terms[0].where)
        throw NoNumbers(
            "{} has values at {}, {} at {}",
            name_of_side(std::span(found.cells).first(2), claim.metric->scale), found.where,
            name_of_side(std::span(found.cells).subspan(i, 2), claim.metric->scale), where);
      found.where += " and " + where;
    } else {
      found.where = where;
    }
  }
  return found;
}

/// Adds the weighted values of a seed to both sides, unless a run is missing.
void add_seed(std::uint64_t seed, const Claim& claim, const ClaimsFile& file,
              const ClaimCells& cells, Contrast& contrast) {
  std::vector<Runs> runs;
  for (std::size_t i = 0; i < cells.cells.size(); ++i) {
    runs.push_back(cells.cells[i].at(seed, cells.rates[i]));
    if (runs.back().empty()) return;
  }
  double sides[] = {0, 0};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const bool is_second = i >= runs.size() / 2;
    const double value = claim.terms[i].weight * value_of(runs[i], *claim.metric);
    sides[is_second ? 1 : 0] += is_second ? -value : value;
    for (const Row* run : runs[i])
      contrast.stated_before = contrast.stated_before && run->fact("claims") == file.digest;
  }
  contrast.seeds.push_back(seed);
  contrast.a.push_back(sides[0]);
  contrast.b.push_back(sides[1]);
}

/// Returns why the sides of a contrast do not differ at all; empty if they do.
std::string none_to_compare(const Claim& claim, const ClaimCells& cells, const Contrast& contrast) {
  for (std::size_t i = 0; i < cells.cells.size(); i += 2) {
    const ClaimCell &arm = cells.cells[i], &reference = cells.cells[i + 1];
    if (std::ranges::none_of(arm.runs, &Row::finished) &&
        std::ranges::none_of(reference.runs, &Row::finished))
      return fmt::format("all runs of {} and {} diverged", arm.arm, reference.arm);
  }
  if (contrast.a != contrast.b) return "";
  return fmt::format("{}: {}", claim.metric->label,
                     claim.terms.size() > 2 ? "both differences of every seed are equal"
                                            : "both runs of every pair have the same value");
}

Contrast contrast_of(const Claim& claim, const ClaimsFile& file, const Seeds& seeds,
                     std::span<const Row* const> runs) {
  const ClaimCells cells = cells_of(claim, file, seeds, runs);
  const std::span<const ClaimCell> all = cells.cells;
  Contrast contrast;
  contrast.arm = name_of_side(all.first(all.size() / 2), claim.metric->scale);
  contrast.reference = name_of_side(all.last(all.size() / 2), claim.metric->scale);
  contrast.where = cells.where;
  contrast.parameters = static_cast<double>(all[1].runs.front()->status.parameters);
  const Seeds candidates =
      seeds.empty() ? mapped(all[0].by_seed, [](const auto& each) { return each.first; }) : seeds;
  for (const std::uint64_t seed : candidates) add_seed(seed, claim, file, cells, contrast);
  if (contrast.seeds.empty())
    throw NoNumbers(
        seeds.empty()
            ? fmt::format("{} and {} have no common seed", contrast.arm, contrast.reference)
            : fmt::format("none of the seeds {} was trained in both {} and {}", seeds_text(seeds),
                          contrast.arm, contrast.reference));
  contrast.none = none_to_compare(claim, cells, contrast);
  return contrast;
}

Index size_of(const Row& run) { return system::read_number<Index>(run.value(kSize)).value_or(0); }

/// Returns seeds by size: as the claim names them, or for the sizes at which both arms ran; for a
/// claim about one size, the size 0 with its seeds.
std::map<Index, Seeds> sizes_that_count(const Claim& claim, std::span<const Row* const> runs) {
  if (claim.over == Over::no_sizes) return {{0, claim.seeds}};
  if (!claim.seeds_of_size.empty()) return claim.seeds_of_size;
  std::vector<std::set<Index>> sizes;
  for (const Term& term : claim.terms) {
    std::set<Index>& of_term = sizes.emplace_back();
    for (const Row* run : runs_of(term.arm, term.where, runs))
      if (counts(*run, claim.seeds)) of_term.insert(size_of(*run));
  }
  const std::string &arm = claim.terms[0].arm, &reference = claim.terms[1].arm;
  if (sizes[0] != sizes[1])
    throw NoNumbers("{} has runs at {} {}, {} at {}; select sizes with 'where'", arm, kSize,
                    fmt::join(sizes[0], ", "), reference, fmt::join(sizes[1], ", "));
  if (sizes[0].size() < 2)
    throw NoNumbers("{} and {} have runs at {} of {}, but need two or more", arm, reference,
                    sizes[0].empty() ? "no value" : "one value", kSize);
  std::map<Index, Seeds> found;
  for (const Index size : sizes[0]) found[size] = claim.seeds;
  return found;
}

/// Returns the contrast at one of several sizes. Throws NoNumbers if there are too few seeds.
Contrast contrast_at(Index size, const Seeds& seeds, const Claim& claim, const ClaimsFile& file,
                     std::span<const Row* const> runs) {
  Runs of_size;
  std::ranges::copy_if(runs, std::back_inserter(of_size),
                       [&](const auto* run) { return size_of(*run) == size; });
  std::string why;
  try {
    Contrast contrast = contrast_of(claim, file, seeds, of_size);
    if (std::ssize(contrast.seeds) >= kSeedsForVerdict) return contrast;
    why = fmt::format("{} seeds; need {}", contrast.seeds.size(), kSeedsForVerdict);
  } catch (const NoNumbers& none) {
    why = none.what();
  }
  throw NoNumbers("{} {}: {}", kSize, size, why);
}

/// Fills the estimate of contrasts at several sizes.
void estimate_over_sizes(const Claim& claim, std::span<const Contrast> contrasts,
                         Measured& measured) {
  std::vector<stats::SizeGaps> gaps;
  for (std::size_t i = 0; i < contrasts.size(); ++i) {
    const Contrast& each = contrasts[i];
    gaps.push_back({each.parameters, each.seeds, each.gaps()});
    measured.sizes[i].parameters = each.parameters;
    measured.sizes[i].seeds = std::ssize(each.seeds);
    measured.sizes[i].gap = stats::mean_interval(gaps.back().gaps);
  }
  if (std::ranges::all_of(gaps, [&](const auto& each) { return each.size == gaps[0].size; }))
    throw NoNumbers("all sizes have {:g} parameters", gaps[0].size);
  const auto trend = claim.over == Over::slope ? stats::Trend::slope : stats::Trend::mean;
  measured.paired = stats::size_trend(gaps, trend);
  if (std::isnan(measured.paired.error) && measured.failed_control.empty())
    measured.failed_control = "all differences at each size are equal, so the spread is unknown";
  measured.where =
      fmt::format("{} sizes{}", contrasts.size(), claim.own_lr.empty() ? "" : ", own lr");
}

/// Joins the contrasts of all sizes and estimates the claim.
Measured joined(const Claim& claim, const ClaimsFile& file, std::span<const Row* const> runs) {
  Measured measured;
  measured.stated_before = true;
  std::vector<Contrast> contrasts;
  for (const auto& [size, seeds] : sizes_that_count(claim, runs)) {
    const bool one = claim.over == Over::no_sizes;
    const Contrast& each = contrasts.emplace_back(
        one ? contrast_of(claim, file, seeds, runs) : contrast_at(size, seeds, claim, file, runs));
    if (!one) measured.sizes.push_back({.d_model = size, .gap = {}});
    measured.seeds.insert(measured.seeds.end(), each.seeds.begin(), each.seeds.end());
    measured.a.insert(measured.a.end(), each.a.begin(), each.a.end());
    measured.b.insert(measured.b.end(), each.b.begin(), each.b.end());
    measured.stated_before = measured.stated_before && each.stated_before;
    measured.missing += std::max<Index>(0, std::ssize(seeds) - std::ssize(each.seeds));
  }
  const Contrast& first = contrasts.front();
  measured.arm = first.arm;
  measured.reference = first.reference;
  measured.where = first.where;
  if (std::ranges::none_of(contrasts, [](const Contrast& each) { return each.none.empty(); }))
    measured.failed_control = first.none;
  if (claim.over != Over::no_sizes) {
    estimate_over_sizes(claim, contrasts, measured);
    return measured;
  }
  measured.paired = stats::paired_difference(measured.a, measured.b);
  // A difference of roots is not itself a root.
  const Scale scale = claim.metric->scale;
  const Scale read = claim.terms.size() > 2 && scale == Scale::root ? Scale::difference : scale;
  measured.arm_mean = mean_from_scale(measured.a, read);
  measured.reference_mean = mean_from_scale(measured.b, read);
  return measured;
}

std::string failed_control(const Control& control, const Claim& claim,
                           std::span<const Row* const> runs) {
  const Quantity& metric = *control.metric;
  std::vector<double> values;
  for (const Row* run : runs_of(control.arm, claim.terms[0].where, runs)) {
    const auto of_size = claim.seeds_of_size.find(size_of(*run));
    if (!claim.seeds_of_size.empty() && of_size == claim.seeds_of_size.end()) continue;
    const Seeds& seeds = claim.seeds_of_size.empty() ? claim.seeds : of_size->second;
    if (counts(*run, seeds)) values.push_back(run->number(metric));
  }
  const double mean = stats::mean(values);
  if (std::isnan(mean))
    throw NoNumbers("control: a run of {} has no value of {}", control.arm, metric.label);
  if (mean >= control.from && mean <= control.to) return "";
  return fmt::format("{}: {} has {:.3g} on average; need {}", metric.label, control.arm, mean,
                     std::isinf(control.to) ? fmt::format("{:g} or more", control.from)
                     : std::isinf(control.from)
                         ? fmt::format("{:g} or less", control.to)
                         : fmt::format("{:g} to {:g}", control.from, control.to));
}

}  // namespace

Measured measure(const Claim& claim, const ClaimsFile& file, std::span<const Row* const> runs) {
  try {
    Measured measured = joined(claim, file, runs);
    for (const Control& control : claim.controls) {
      if (!measured.failed_control.empty()) break;
      measured.failed_control = failed_control(control, claim, runs);
    }
    return measured;
  } catch (const NoNumbers& none) {
    Measured untested;
    untested.reason = none.what();
    return untested;
  }
}

}  // namespace difftape::study
