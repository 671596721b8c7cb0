#pragma once
// Typed values of configuration keys, their constraints, and strict reading from YAML.

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/real.h"
#include "train/run/config/yaml.h"

namespace difftape::run {

using ConfigValue = std::variant<bool, Index, double, std::string, std::vector<Index>,
                                 std::vector<double>, std::vector<std::string>>;

/// Condition on a value, or on every item of a list.
struct Constraint {
  double min = -kInfinity;
  double max = kInfinity;
  bool above_min = false;               ///< min itself is excluded
  bool below_max = false;               ///< max itself is excluded
  std::vector<std::string> names = {};  ///< if not empty, the only allowed words
  bool or_number = false;               ///< also allows numbers within the limits
  bool path = false;                    ///< a file path, relative to the file that contains it
  std::string share_of = {};            ///< key that a value such as "10%" refers to
  double default_percent = 0;           ///< default as a percentage of share_of

  bool allows(double number) const;
  /// Returns a copy that also allows percentages of `key`; the default is `percent` of it.
  Constraint or_share_of(std::string key, double percent) const;
  /// Returns ">= 1", "in (0, 1]", "softmax | diff_v1", "preset | > 0", ">= 0 | % of train.steps" or
  /// "any".
  std::string str() const;
  /// Returns the condition on numbers only.
  std::string range() const;
};

inline Constraint any_value() { return {}; }
inline Constraint at_least(double min) { return {.min = min}; }
inline Constraint above(double min) { return {.min = min, .above_min = true}; }
inline Constraint between(double min, double max) { return {.min = min, .max = max}; }
/// min < x < max
inline Constraint strictly_between(double min, double max) {
  return {.min = min, .max = max, .above_min = true, .below_max = true};
}
/// min <= x < max
inline Constraint from_to_below(double min, double max) {
  return {.min = min, .max = max, .below_max = true};
}
inline Constraint paths() { return {.path = true}; }
inline Constraint choices(std::vector<std::string> names) { return {.names = std::move(names)}; }

/// Returns 10 for "10%", and nothing for a string that is not a percentage.
std::optional<double> percent_of(const std::string& text);

/// The type of a key, given by its default, and its constraint.
struct ValueSpec {
  ConfigValue initial;
  Constraint constraint;
  size_t length = 0;      ///< exact number of items of a list; 0: any number
  std::string form = {};  ///< type of a value that ConfigValue cannot hold

  /// Returns the type in messages and `config keys`: "integer", "list of 2 numbers", ...
  std::string type() const;
  /// Returns the default; a percentage as the string "10%".
  ConfigValue standard() const;
};

/// Reads the value of `key`. Adds a bad value to `errors` and returns nothing. A percentage stays
/// the string "10%" until the key that it refers to is known.
std::optional<ConfigValue> read_value(const YamlNode& node, const std::string& key,
                                      const ValueSpec& spec, ConfigErrors& errors);

}  // namespace difftape::run
