#pragma once
// Makes a Field from the path of member pointers that leads from Config to its value.

#include <array>
#include <concepts>
#include <utility>

#include "train/run/config/fields.h"

namespace difftape::run::detail {

inline ConfigValue to_value(bool v) { return v; }
inline ConfigValue to_value(std::integral auto v) { return static_cast<Index>(v); }
inline ConfigValue to_value(double v) { return v; }
inline ConfigValue to_value(const std::string& v) { return v; }
inline ConfigValue to_value(const std::vector<std::string>& v) { return v; }
inline ConfigValue to_value(const std::vector<Index>& v) { return v; }
template <size_t N>
ConfigValue to_value(const std::array<double, N>& v) {
  return std::vector<double>(v.begin(), v.end());
}

template <class T>
void from_value(const ConfigValue& value, T& out) {
  if constexpr (std::integral<T> && !std::same_as<T, bool>) {
    out = static_cast<T>(std::get<Index>(value));
  } else {
    out = std::get<T>(value);
  }
}
template <size_t N>
void from_value(const ConfigValue& value, std::array<double, N>& out) {
  const auto& items = std::get<std::vector<double>>(value);
  std::copy_n(items.begin(), N, out.begin());
}

template <class T>
inline constexpr size_t kFixedLength = 0;
template <size_t N>
inline constexpr size_t kFixedLength<std::array<double, N>> = N;

/// field<&Config::optim, &OptimConfig::lr>("optim.lr", above(0), "", "Peak learning rate.")
template <auto... path>
Field field(std::string key, Constraint constraint, std::string unit, std::string help) {
  using T = std::remove_reference_t<decltype((std::declval<Config&>().*....*path))>;
  Field made;
  made.get = [](const Config& config) { return to_value((config.*....*path)); };
  made.set = [](Config& config, const ConfigValue& value) {
    from_value(value, (config.*....*path));
  };
  made.key = std::move(key);
  made.spec = {made.get(Config{}), std::move(constraint), kFixedLength<T>};
  made.unit = std::move(unit);
  made.help = std::move(help);
  return made;
}

}  // namespace difftape::run::detail
