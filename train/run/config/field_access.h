#pragma once
// Makes a Field from the path of member pointers that leads from Config to its value.

#include <algorithm>
#include <array>
#include <concepts>
#include <utility>

#include "core/names.h"
#include "train/run/config/fields.h"

namespace difftape {

/// Names of an optional boolean, whose default depends on another key.
template <>
inline constexpr auto kNames<bool> = std::to_array<Named<bool>>({{"true", true}, {"false", false}});

}  // namespace difftape

namespace difftape::run::detail {

/// A member with a fixed list of names as values.
template <class T>
concept Choice = HasNames<T> && !std::same_as<T, bool>;
/// Value of an optional member that is not set: its attention kind or preset decides.
inline constexpr const char* kPreset = "preset";
/// Value of a standard deviation computed from the fan-in of a projection.
inline constexpr const char* kFanIn = "fan_in";

/// Upper limit of counts, more than any machine can hold.
inline constexpr double kMaxSize = 1 << 20;

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

template <Choice T>
ConfigValue to_value(const T& v) {
  return std::string(to_string(v));
}
template <HasNames T>
ConfigValue to_value(const std::optional<T>& v) {
  return std::string(v ? to_string(*v) : kPreset);
}
inline ConfigValue to_value(const std::optional<double>& v) {
  return v ? ConfigValue(*v) : ConfigValue(kPreset);
}
inline ConfigValue to_value(const std::optional<ProjectionStd>& v) {
  if (v && v->fan_in) return kFanIn;
  return v ? ConfigValue(v->factor) : ConfigValue(kPreset);
}

template <class T>
void from_value(const ConfigValue& value, T& out) {
  if constexpr (std::integral<T> && !std::same_as<T, bool>)
    out = static_cast<T>(std::get<Index>(value));
  else if constexpr (Choice<T>)
    out = from_string<T>(std::get<std::string>(value)).value();
  else
    out = std::get<T>(value);
}
template <HasNames T>
void from_value(const ConfigValue& value, std::optional<T>& out) {
  out = from_string<T>(std::get<std::string>(value));  // nothing for kPreset
}
inline void from_value(const ConfigValue& value, std::optional<double>& out) {
  const double* number = std::get_if<double>(&value);
  out = number ? std::optional(*number) : std::nullopt;
}
inline void from_value(const ConfigValue& value, std::optional<ProjectionStd>& out) {
  if (const double* number = std::get_if<double>(&value))
    out = ProjectionStd{*number};
  else if (std::get<std::string>(value) == kFanIn)
    out = ProjectionStd{1, true};
  else
    out.reset();
}
template <size_t N>
void from_value(const ConfigValue& value, std::array<double, N>& out) {
  const auto& items = std::get<std::vector<double>>(value);
  std::copy_n(items.begin(), N, out.begin());
}

/// Returns the words that a key of type T accepts; empty if T has no names.
template <class T>
std::vector<std::string> words_of() {
  std::vector<std::string> words;
  if constexpr (Choice<T>) words = names<T>();
  if constexpr (requires { requires HasNames<typename T::value_type>; }) {
    words = names<typename T::value_type>();
    words.insert(words.begin(), kPreset);
  }
  if constexpr (std::same_as<T, std::optional<double>>) words = {kPreset};
  if constexpr (std::same_as<T, std::optional<ProjectionStd>>) words = {kPreset, kFanIn};
  return words;
}
/// True for types that accept a number or a word.
template <class T>
inline constexpr bool kIsNumberOrWord =
    std::same_as<T, std::optional<double>> || std::same_as<T, std::optional<ProjectionStd>>;

template <class T>
inline constexpr size_t kFixedLength = 0;
template <size_t N>
inline constexpr size_t kFixedLength<std::array<double, N>> = N;

/// Returns the registry entry of one member, for example
/// field<&Config::optim, &OptimConfig::lr>("optim.lr", above(0), "", "Peak learning rate.").
/// Without `flags` the entry has the usual flags of its section.
template <auto... path>
Field field(std::string key, Constraint constraint, std::string unit, std::string help,
            std::optional<unsigned> flags = {}) {
  using T = std::remove_reference_t<decltype((std::declval<Config&>().*....*path))>;
  Field made;
  made.get = [](const Config& config) { return to_value((config.*....*path)); };
  made.set = [](Config& config, const ConfigValue& value) {
    from_value(value, (config.*....*path));
  };
  made.flags = flags.value_or(usual_flags(key));
  made.key = std::move(key);
  if (auto words = words_of<T>(); !words.empty()) constraint.names = std::move(words);
  constraint.or_number = kIsNumberOrWord<T>;
  made.spec = {made.get(Config{}), std::move(constraint), kFixedLength<T>};
  made.unit = std::move(unit);
  made.help = std::move(help);
  return made;
}

}  // namespace difftape::run::detail
