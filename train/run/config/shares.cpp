#include "train/run/config/shares.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

namespace difftape::run {
namespace {

constexpr double kMaxPart = 1e15;  // where each integer still has a double of its own

double number_of(const ConfigValue& value) {
  const Index* whole = std::get_if<Index>(&value);
  return whole ? static_cast<double>(*whole) : std::get<double>(value);
}

double part_of(const ConfigValue& whole, double percent, bool rounds) {
  const double part = number_of(whole) * percent / 100;
  return rounds ? std::round(part) : std::strtod(fmt::format("{:.15g}", part).c_str(), nullptr);
}

}  // namespace

Shares::Shares() {
  for (const Field& field : fields()) {
    if (!field.spec.constraint.share_of.empty()) take(field, field.spec.standard());
  }
}

bool Shares::take(const Field& field, const ConfigValue& value) {
  if (field.spec.constraint.share_of.empty()) return false;
  const std::string* share = std::get_if<std::string>(&value);
  if (share) {
    text_of_[field.key] = *share;
  } else {
    text_of_.erase(field.key);
  }
  return share != nullptr;
}

void Shares::apply(ResolvedConfig& resolved, std::set<std::string>& broken,
                   ConfigErrors& errors) const {
  for (const auto& [key, text] : text_of_) {
    const Field& field = *find_field(key);
    const Field& whole = *find_field(field.spec.constraint.share_of);
    Origin& origin = resolved.origins[key];
    origin.share = fmt::format("{} of {}", text, whole.key);
    if (broken.contains(key) || broken.contains(whole.key)) continue;
    const bool rounds = std::holds_alternative<Index>(field.spec.initial);
    const ConfigValue of = whole.get(resolved.config);
    const double part = part_of(of, percent_of(text).value(), rounds);
    if (part > kMaxPart || !field.spec.constraint.allows(part)) {
      errors.add(origin.location,
                 fmt::format("{}: {}, {}, is {} and out of range; need {}", key, origin.share,
                             number_of(of), part, field.spec.constraint.range()));
      broken.insert(key);
      continue;
    }
    field.set(resolved.config, rounds ? ConfigValue(static_cast<Index>(part)) : ConfigValue(part));
  }
}

}  // namespace difftape::run
