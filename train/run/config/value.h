#pragma once
// Typed values of configuration keys: what is allowed, and reading them strictly from YAML.

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/real.h"
#include "train/run/config/yaml.h"

namespace difftape::run {

using ConfigValue = std::variant<bool, Index, double, std::string, std::vector<Index>,
                                 std::vector<double>, std::vector<std::string>>;

/// What a value must satisfy. Lists: every item.
struct Constraint {
  double min = -kInfinity;
  double max = kInfinity;
  bool above_min = false;               ///< min itself is excluded
  bool below_max = false;               ///< max itself is excluded
  std::vector<std::string> names = {};  ///< if not empty, the only allowed texts
  bool or_number = false;               ///< numbers within the limits too, beside the names
  bool path = false;                    ///< of files, seen from the folder of the file that says it
  std::string share_of = {};            ///< a key of a number: this one may be a share of it, "10%"
  double default_percent = 0;           ///< of share_of, if nothing is given

  bool allows(double number) const;
  /// The same, but shares too; without any it is `percent` of the value of `key`.
  Constraint or_share_of(std::string key, double percent) const;
  /// ">= 1", "in (0, 1]", "softmax | diff_v1", "preset | > 0", ">= 0 | % of train.steps", or "any".
  std::string str() const;
  /// The same of numbers alone.
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

/// 10 for "10%"; nothing for a text that is not a share.
std::optional<double> percent_of(const std::string& text);

/// The type of a key, given by its default, and its constraint.
struct ValueSpec {
  ConfigValue initial;
  Constraint constraint;
  size_t length = 0;      ///< exact number of items of a list; 0: any number
  std::string form = {};  ///< what a value that no ConfigValue can hold looks like

  /// "integer", "list of 2 numbers", ...: how messages and `config keys` call the type.
  std::string type() const;
  /// What holds if nothing is given: a share as text, "10%".
  ConfigValue standard() const;
};

/// The value of `key`, or nothing after adding to `errors` what is wrong with it. A share stays the
/// text "10%": its value follows from that of another key.
std::optional<ConfigValue> read_value(const YamlNode& node, const std::string& key,
                                      const ValueSpec& spec, ConfigErrors& errors);

}  // namespace difftape::run
