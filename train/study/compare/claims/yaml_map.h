#pragma once
// Maps of a claims file: each key is known, and what is wrong is said with its place.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/names.h"
#include "train/run/config/reader.h"
#include "train/run/config/value.h"
#include "train/run/config/yaml.h"
#include "train/study/compare/quantities.h"
#include "train/system/suggest.h"

namespace difftape::study {

/// A map of the file, whose keys are known.
class YamlMap {
 public:
  /// `name` is what messages call it, "claims.v2_loss".
  YamlMap(const run::YamlNode& node, std::string name, const std::vector<std::string>& known,
          run::ConfigErrors& errors)
      : node_(&node), name_(std::move(name)), errors_(&errors) {
    if (node.kind != run::YamlNode::Kind::map) {
      errors.add(node.location, fmt::format("{}: expected a map, got {}", name_, node.describe()));
      return;
    }
    std::set<std::string> seen;
    for (const auto& [key, value] : node.pairs) {
      if (!known.empty() && std::ranges::find(known, key.text) == known.end()) {
        constexpr std::size_t kListed = 20;
        errors.add(key.location,
                   fmt::format("unknown key '{}'{}; {}", dotted(key.text),
                               system::did_you_mean(key.text, known),
                               known.size() > kListed
                                   ? "'difftape config keys' lists all keys"
                                   : fmt::format("{} has {}", name_, fmt::join(known, ", "))));
      } else if (!seen.insert(key.text).second) {
        errors.add(key.location, fmt::format("duplicate key '{}'", dotted(key.text)));
      }
    }
  }

  const run::YamlNode* find(const std::string& key) const {
    if (node_->kind != run::YamlNode::Kind::map) return nullptr;
    const auto found =
        std::ranges::find(node_->pairs, key, [](const auto& p) { return p.key.text; });
    return found == node_->pairs.end() ? nullptr : &found->value;
  }
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
  std::string required(const std::string& key) const {
    if (find(key) == nullptr && node_->kind == run::YamlNode::Kind::map) {
      errors_->add(node_->location, fmt::format("{}: has no '{}'", name_, key));
    }
    return get<std::string>(key, "");
  }
  /// The quantity that a key names; null after an error.
  const Quantity* metric(const std::string& key) const {
    const std::string name = required(key);
    if (name.empty()) return nullptr;
    const Quantity* found = find_quantity(name);
    if (found == nullptr) {
      std::vector<std::string> all;
      for (const Quantity& each : quantities()) all.emplace_back(each.name);
      errors_->add(find(key)->location,
                   fmt::format("{}: no metric is called '{}'{}; there are {}", dotted(key), name,
                               system::did_you_mean(name, all), fmt::join(all, ", ")));
    }
    return found;
  }

  std::string dotted(const std::string& key) const {
    return name_.empty() ? key : fmt::format("{}.{}", name_, key);
  }
  void wrong(const std::string& key, const std::string& what) const {
    const run::YamlNode* node = find(key);
    errors_->add(node ? node->location : node_->location, fmt::format("{}: {}", dotted(key), what));
  }

 private:
  const run::YamlNode* node_;
  std::string name_;
  run::ConfigErrors* errors_;
};

}  // namespace difftape::study
