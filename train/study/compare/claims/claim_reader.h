#pragma once
// Reads a claims file strictly: unknown keys are errors. claims_file.h describes the format.

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/names.h"
#include "train/run/config/value.h"
#include "train/run/config/yaml.h"
#include "train/study/compare/claims/claims_file.h"

namespace difftape::study {

/// A map of the file. Errors are reported with their location.
class YamlMap {
 public:
  /// `name` is its name in messages, "claims.v2_loss". Empty `known` allows any key.
  YamlMap(const run::YamlNode& node, std::string name, const std::vector<std::string>& known,
          run::ConfigErrors& errors);

  bool is_map() const { return node_->kind == run::YamlNode::Kind::map; }
  const run::YamlNode* find(const std::string& key) const;
  /// Returns the value of a key, or `fallback` if it is missing or, after reporting it, invalid.
  template <class T>
  T get(const std::string& key, T fallback, run::Constraint constraint = {}) const {
    const run::YamlNode* node = find(key);
    if (node == nullptr) return fallback;
    const auto value = read_value(*node, dotted(key), {T{}, std::move(constraint)}, *errors_);
    return value ? std::get<T>(*value) : fallback;
  }
  template <class E>
  E word(const std::string& key, E fallback) const {
    const std::string text =
        get<std::string>(key, std::string(to_string(fallback)), run::choices(names<E>()));
    return from_string<E>(text).value_or(fallback);
  }
  /// Reports a missing key.
  void require(const std::string& key) const;
  /// Returns the string of a key, or "" after reporting that it is missing.
  std::string required(const std::string& key) const;
  const Quantity* metric(const std::string& key) const;

  std::string dotted(const std::string& key) const;
  void wrong(const std::string& key, const std::string& what) const;

 private:
  const run::YamlNode* node_;
  std::string name_;
  run::ConfigErrors* errors_;
};

/// Reads seeds, as integers or as ranges "11..18". Reports anything else, and duplicate seeds.
Seeds read_seeds(const run::YamlNode& list, const YamlMap& map, const std::string& key);

Claim read_claim(const std::string& id, const run::YamlNode& node, const ClaimsFile& file,
                 run::ConfigErrors& errors);

}  // namespace difftape::study
