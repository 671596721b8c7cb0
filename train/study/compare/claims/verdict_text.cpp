// The verdict on one claim in words.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "train/study/compare/claims/output.h"

namespace difftape::study {

namespace {

std::string number(double value, const Quantity& quantity) {
  return quantity.scale == Scale::ratio ? fmt::format("{:.{}g}", value, quantity.digits)
                                        : fmt::format("{:.{}f}", value, quantity.digits);
}

/// A difference on the axis, as it is read: a factor, or a signed number.
std::string shown(double difference, const Quantity& quantity) {
  return quantity.scale == Scale::ratio ? fmt::format("{:.3g}", std::exp(difference))
                                        : fmt::format("{:+.{}f}", difference, quantity.digits);
}

/// What p and p_other are of.
std::pair<const char*, const char*> what_is_tested(Expect expect) {
  switch (expect) {
    case Expect::equivalent:
      return {"p within the margin", "beyond the margin"};
    case Expect::not_higher:
      return {"p not above the margin", "above the margin"};
    case Expect::lower:
    case Expect::higher:
      break;
  }
  return {"p", "within the margin"};
}

std::string p_text(const ClaimResult& result) {
  std::string text;
  const auto add = [&text](const char* what, double p) {
    if (!std::isnan(p)) text += fmt::format("{}{} {:.2g}", text.empty() ? "; " : ", ", what, p);
  };
  const auto [own, other] = what_is_tested(result.claim->expect);
  add(own, result.p);
  add("corrected", result.p_corrected);
  add("by signs", result.p_signs);
  add(other, result.p_other_corrected);
  return text;
}

/// What a published size says beside the interval.
std::string published_text(const ClaimResult& result) {
  const Claim& claim = *result.claim;
  const stats::Interval& found = result.measured.paired.difference;
  if (std::isnan(claim.published_low) || std::isnan(found.half_width)) return "";
  const double low = claim.on_axis(claim.published_low), high = claim.on_axis(claim.published_high);
  const bool apart = found.high() < low || found.low() > high;
  const bool inside = found.low() >= low && found.high() <= high;
  return fmt::format("; the published {:g} to {:g} {}", claim.published_low, claim.published_high,
                     apart    ? "lies outside the interval"
                     : inside ? "contains the interval"
                              : "overlaps the interval");
}

/// What the difference is of: "v2 1.7388, softmax 1.7948; difference", "v2 less softmax, slope per
/// decade of parameters".
std::string what_was_compared(const ClaimResult& result) {
  const Measured& found = result.measured;
  const Quantity& metric = *result.claim->metric;
  const char* differs = what_differs(metric.scale);
  if (result.claim->over != Over::no_sizes) {
    return fmt::format(
        "{} against {}, {} of {}s", found.arm, found.reference,
        result.claim->over == Over::slope ? "slope per decade of parameters" : "mean", differs);
  }
  const bool of_differences = result.claim->compared_with.has_value();
  const auto mean = [&](double value) {
    if (!of_differences) return number(value, metric);
    return shown(metric.scale == Scale::ratio ? std::log(value) : value, metric);
  };
  if (result.claim->has_value()) {
    return fmt::format("{} {}; {} to {}", found.arm, mean(found.arm_mean), differs,
                       found.reference);
  }
  return fmt::format("{} {}, {} {}; {}", found.arm, mean(found.arm_mean), found.reference,
                     mean(found.reference_mean), differs);
}

/// ": -0.0440 at 67,000 parameters (n 16), ...": the differences of the sizes.
std::string sizes_text(const ClaimResult& result) {
  std::vector<std::string> texts;
  for (const GapAtSize& size : result.measured.sizes) {
    texts.push_back(fmt::format("{} at {} parameters (n {})",
                                shown(size.gap.mean, *result.claim->metric),
                                system::grouped(std::llround(size.parameters)), size.seeds));
  }
  return texts.empty() ? "" : fmt::format(" ({})", fmt::join(texts, ", "));
}

}  // namespace

std::string difference_text(const ClaimResult& result) {
  const Quantity& metric = *result.claim->metric;
  const stats::Interval& difference = result.measured.paired.difference;
  const std::string text = shown(difference.mean, metric);
  if (std::isnan(difference.half_width)) return text;
  return fmt::format("{} ({} to {})", text, shown(difference.low(), metric),
                     shown(difference.high(), metric));
}

std::string numbers_text(const ClaimResult& result) {
  const Measured& found = result.measured;
  if (found.seeds.empty()) return "";
  const Quantity& metric = *result.claim->metric;
  return fmt::format("{}: {} {}, {} {} at {}{}{}{}", metric.label, what_was_compared(result),
                     difference_text(result), found.seeds.size(),
                     found.seeds.size() == 1 ? "seed" : "seeds", found.where, sizes_text(result),
                     p_text(result), published_text(result));
}

std::string verdict_text(const ClaimResult& result) {
  const Claim& claim = *result.claim;
  const std::string text = result.verdict.words();
  const bool expects_difference = claim.expect == Expect::lower || claim.expect == Expect::higher;
  const bool small = expects_difference && result.p_other_corrected <= result.alpha;
  const char* what = claim.metric->scale == Scale::ratio ? "factor"
                     : claim.over == Over::slope         ? "slope"
                                                         : what_differs(claim.metric->scale);
  switch (result.verdict.finding) {
    case Finding::supported:
    case Finding::contradicted:
      return text + (small ? "; the difference is within the margin" : "");
    case Finding::equivalent:
      return fmt::format("{}: no {} larger than {:g}", text, what, claim.margin);
    case Finding::inconclusive:
    case Finding::not_testable:
    case Finding::not_tested:
      break;
  }
  const std::string& reason = result.verdict.reason;
  return reason.empty() ? text : fmt::format("{}: {}", text, reason);
}

}  // namespace difftape::study
