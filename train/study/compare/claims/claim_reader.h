#pragma once
// Maps of a claims file, each key of which is known, and one claim of it, read strictly. The format
// stands at the head of claims_file.h.

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/names.h"
#include "train/run/config/value.h"
#include "train/run/config/yaml.h"
#include "train/study/compare/claims/claims_file.h"

namespace difftape::study {

/// A map of the file. What is wrong with it is reported with its place.
class YamlMap {
 public:
  /// `name` is what messages call it, "claims.v2_loss"; no `known` keys: any.
  YamlMap(const run::YamlNode& node, std::string name, const std::vector<std::string>& known,
          run::ConfigErrors& errors);

  bool is_map() const { return node_->kind == run::YamlNode::Kind::map; }
  const run::YamlNode* find(const std::string& key) const;
  /// The value of a key; `fallback` if it is not there or was wrong, which is then an error.
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
  std::string required(const std::string& key) const;
  const Quantity* metric(const std::string& key) const;

  std::string dotted(const std::string& key) const;
  void wrong(const std::string& key, const std::string& what) const;

 private:
  const run::YamlNode* node_;
  std::string name_;
  run::ConfigErrors* errors_;
};

/// Seeds, as integers or as ranges "11..18". Reports anything else, and a seed that is named twice.
Seeds read_seeds(const run::YamlNode& list, const YamlMap& map, const std::string& key);

Claim read_claim(const std::string& id, const run::YamlNode& node, const ClaimsFile& file,
                 run::ConfigErrors& errors);

}  // namespace difftape::study
