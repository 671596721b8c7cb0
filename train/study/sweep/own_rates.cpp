#include "train/study/sweep/own_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/error.h"
#include "train/run/config/fields.h"
#include "train/run/config/value.h"
#include "train/system/shared.h"

namespace difftape::study {

namespace {

namespace fs = std::filesystem;

/// The size of the model. A value that cannot be read is reported where the run is resolved.
std::string d_model_of(const run::Assignments& values) {
  const run::Field& field = *run::find_field("model.d_model");
  run::ConfigErrors ignored;
  const run::Assignment* given = values.find(field.key);
  const auto value =
      given ? read_value(given->value, field.key, field.spec, ignored) : std::nullopt;
  return fmt::to_string(std::get<Index>(value.value_or(field.spec.initial)));
}

}  // namespace

fs::path named_path(const std::string& path, const run::SourceLocation& named_at) {
  return system::here_or_shared(
      path, named_at.line > 0 ? fs::path(named_at.source).parent_path() : fs::path());
}

std::optional<NamedRates> read_named_rates(const std::string& path,
                                           const run::SourceLocation& named_at,
                                           run::ConfigErrors& errors) {
  try {
    return NamedRates{read_own_rates(named_path(path, named_at)), named_at};
  } catch (const Error& error) {
    errors.add(named_at, fmt::format("sweep.lr: {}", error.what()));
    return std::nullopt;
  }
}

std::optional<std::string> own_rate(const NamedRates& rates,
                                    const std::array<std::string, 2>& names,
                                    const run::Assignments& values, const std::string& factor,
                                    run::ConfigErrors& errors) {
  const bool whole = std::ranges::any_of(rates.own.rates, [&](const OwnRate& rate) {
    return rate.arm == names[0];
  });
  try {
    const OwnRate& rate = rates.own.of(names[whole ? 0 : 1], d_model_of(values));
    return fmt::format("{:.3g}", rate.lr * std::strtod(factor.c_str(), nullptr));
  } catch (const DataError& error) {
    errors.add(rates.named_at, fmt::format("sweep.lr: {}", error.what()));
    return std::nullopt;
  }
}

}  // namespace difftape::study
