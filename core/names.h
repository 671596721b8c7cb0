#pragma once
// One mapping between names and values. Each type declares its names next to it, in its namespace:
//   constexpr auto names_of(Gate) {
//     return std::to_array<Named<Gate>>({{"none", Gate::none}, {"head", Gate::head}});
//   }

#include <array>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace difftape {

template <class T>
struct Named {
  std::string_view name;
  T value;
};

/// Every value of T with its name, a range of Named<T>; not a range for types without names.
template <class T>
inline constexpr std::nullptr_t kNames = nullptr;
template <class T>
requires requires { names_of(T{}); }
inline constexpr auto kNames<T> = names_of(T{});

template <class T>
concept HasNames = std::ranges::range<decltype(kNames<T>)>;

/// Throws std::logic_error for a value without a name.
template <HasNames T>
std::string_view to_string(const T& value) {
  for (const Named<T>& each : kNames<T>) {
    if (each.value == value) return each.name;
  }
  throw std::logic_error("a value without a name");
}

/// Returns nullopt for an unknown name.
template <HasNames T>
std::optional<T> from_string(std::string_view name) {
  for (const Named<T>& each : kNames<T>) {
    if (each.name == name) return each.value;
  }
  return std::nullopt;
}

/// Returns the names in the order of their table.
template <HasNames T>
std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Named<T>& each : kNames<T>) all.emplace_back(each.name);
  return all;
}

}  // namespace difftape
