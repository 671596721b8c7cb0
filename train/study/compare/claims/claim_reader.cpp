#include "train/study/compare/claims/claim_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "train/run/config/fields.h"
#include "train/study/compare/row.h"
#include "train/system/number.h"
#include "train/system/suggest.h"

namespace difftape::study {

namespace {

using run::ConfigErrors;
using run::YamlNode;
using system::read_number;

Regime read_regime(const YamlNode& node, const std::string& name, ConfigErrors& errors) {
  const std::vector<std::string> known = mapped(run::fields(), &run::Field::key);
  const YamlMap map(node, name, known, errors);
  Regime regime;
  if (!map.is_map()) return regime;
  for (const auto& [key, value] : node.pairs) {
    auto& [of, values] = regime.emplace_back(key.text, std::vector<std::string>{});
    if (value.kind == YamlNode::Kind::scalar) values.push_back(value.text);
    for (const YamlNode& item : value.items) values.push_back(item.text);
    if (values.empty())
      map.wrong(key.text,
                fmt::format("expected a value or a list of values, got {}", value.describe()));
  }
  return regime;
}

/// Reads "own" or "4 x own" as a factor.
std::optional<double> own_factor(std::string_view text) {
  constexpr std::string_view kOwn = "own", kTimes = " x own";
  if (text == kOwn) return 1;
  if (!text.ends_with(kTimes)) return std::nullopt;
  const auto factor = read_number<double>(text.substr(0, text.size() - kTimes.size()));
  return factor && std::isfinite(*factor) && *factor > 0 ? factor : std::nullopt;
}

class ClaimReader {
 public:
  ClaimReader(const std::string& id, const YamlNode& node, const ClaimsFile& file,
              ConfigErrors& errors)
      : file_(file),
        errors_(errors),
        map_(node, "claims." + id,
             {"statement", "source", "family", "endpoint", "arm", "reference", "compared_with",
              "metric", "where", "lr", "seeds", "slope_over", "mean_over", "expect", "published",
              "controls", "planned_sd"},
             errors) {
    claim_.id = id;
    claim_.location = node.location;
  }

  Claim read() {
    if (!map_.is_map()) return claim_;
    claim_.statement = map_.required("statement");
    claim_.source = map_.get<std::string>("source", "");
    claim_.family = map_.get<std::string>("family", claim_.id);
    claim_.endpoint = map_.word("endpoint", Rank::exploratory);
    claim_.metric = map_.metric("metric");
    Regime where;
    if (const YamlNode* node = map_.find("where"))
      where = read_regime(*node, map_.dotted("where"), errors_);
    add_difference(1, map_, where);
    if (const YamlNode* pair = map_.find("compared_with")) read_pair(*pair);
    claim_.expect = map_.word("expect", Expect::lower);
    read_sizes();
    if (const YamlNode* lr = map_.find("lr")) read_rates(*lr);
    const bool penalty = claim_.metric && claim_.metric->over_rates == OverRates::penalty;
    if (penalty && claim_.own_lr.size() != 2)
      map_.wrong(
          "lr",
          fmt::format(
              "has {} learning rates, but lr_penalty needs two; write two, such as [own, 4 x own]",
              claim_.own_lr.size()));
    if (claim_.metric) take_margin();
    const bool ratio = claim_.metric && claim_.metric->scale == Scale::ratio;
    claim_.planned_sd = map_.get("planned_sd", kNone, run::above(ratio ? 1 : 0));
    if (const YamlNode* controls = map_.find("controls")) read_controls(*controls);
    return claim_;
  }

 private:
  std::string arm(const YamlMap& map, const std::string& key) const {
    std::string name = map.required(key);
    const std::vector<std::string>& known = file_.arms;
    const bool unknown = !known.empty() && std::ranges::find(known, name) == known.end();
    if (unknown && !name.empty()) {
      map.wrong(key, fmt::format("'{}' is not in arms ({}){}", name, fmt::join(known, ", "),
                                 system::did_you_mean(name, known)));
    }
    return name;
  }

  /// Adds an arm and its reference.
  void add_difference(double weight, const YamlMap& map, const Regime& where) {
    claim_.terms.push_back({weight, arm(map, "arm"), where});
    claim_.terms.push_back({-weight, arm(map, "reference"), where});
  }

  /// Subtracts a second difference, whose `where` replaces keys of the claim's.
  void read_pair(const YamlNode& node) {
    const YamlMap other(node, map_.dotted("compared_with"), {"arm", "reference", "where"}, errors_);
    Regime where = claim_.terms[0].where;
    if (const YamlNode* more = other.find("where")) {
      for (auto& [key, values] : read_regime(*more, other.dotted("where"), errors_)) {
        std::erase_if(where, [&key = key](const auto& entry) { return entry.first == key; });
        where.emplace_back(key, values);
      }
    }
    add_difference(-1, other, where);
    const std::vector<Term>& terms = claim_.terms;
    if (terms[2].arm.empty()) return;
    if (terms[2].arm == terms[3].arm)
      map_.wrong("compared_with",
                 "arm and reference are equal, but must differ; change one of them");
    if (terms[2].arm == terms[0].arm && terms[3].arm == terms[1].arm && where == terms[0].where)
      map_.wrong("compared_with", "equals the claim's own difference; change an arm or 'where'");
  }

  void read_sizes() {
    for (const auto& [key, over] :
         {std::pair("mean_over", Over::mean), {"slope_over", Over::slope}}) {
      if (!map_.find(key)) continue;
      if (claim_.over != Over::no_sizes) map_.wrong(key, "excludes mean_over; keep one of them");
      static_cast<void>(map_.get<std::string>(key, "", run::choices({"parameters"})));
      claim_.over = over;
    }
    const YamlNode* seeds = map_.find("seeds");
    if (seeds == nullptr) {
      claim_.seeds = file_.seeds;
    } else if (seeds->kind == YamlNode::Kind::map) {
      read_seeds_of_sizes(*seeds);
    } else {
      claim_.seeds = read_seeds(*seeds, map_, "seeds");
    }
  }

  void read_seeds_of_sizes(const YamlNode& node) {
    const YamlMap sizes(node, map_.dotted("seeds"), {}, errors_);
    for (const auto& [key, list] : node.pairs) {
      const auto size = read_number<Index>(key.text);
      if (!size || *size < 1)
        sizes.wrong(
            key.text,
            fmt::format("expected a value of model.d_model, such as 64, before its seeds, got '{}'",
                        key.text));
      claim_.seeds_of_size[size.value_or(0)] = read_seeds(list, sizes, key.text);
    }
    if (claim_.over == Over::no_sizes) {
      map_.wrong("seeds", "seeds per size need mean_over or slope_over; add one of them");
    } else if (claim_.seeds_of_size.size() < 2) {
      map_.wrong("seeds",
                 "has one size, but must have at least two to compare over sizes; add one");
    }
  }

  void read_rates(const YamlNode& lr) {
    const std::vector<YamlNode> one{lr};
    for (const YamlNode& item : lr.kind == YamlNode::Kind::list ? lr.items : one) {
      if (const auto factor = own_factor(item.text)) {
        claim_.own_lr.push_back(*factor);
      } else {
        map_.wrong("lr", fmt::format("expected own or 4 x own, got {}", item.describe()));
      }
    }
    std::ranges::sort(claim_.own_lr);
    const auto twice = std::ranges::adjacent_find(claim_.own_lr);
    if (twice != claim_.own_lr.end())
      map_.wrong("lr", fmt::format("has {:g} x own twice; remove one", *twice));
    if (file_.learning_rates.empty())
      map_.wrong("lr", "needs the file of lr_star; name it in 'learning_rates' at the top");
    if (std::ranges::any_of(claim_.terms[0].where,
                            [](const auto& e) { return e.first == "optim.lr"; }))
      map_.wrong("lr", "excludes optim.lr in 'where'; keep one of them");
  }

  void take_margin() {
    const std::string name = margin_name(claim_);
    const auto found = file_.margins.find(name);
    if (found != file_.margins.end()) claim_.margin = found->second.margin;
    if (claim_.expects_difference() || !std::isnan(claim_.margin)) return;
    map_.wrong("expect", fmt::format("'{}' needs a margin; add {}: {{margin: ..., reason: ...}} to "
                                     "'margins' at the top of the file",
                                     to_string(claim_.expect), name));
  }

  void read_controls(const YamlNode& list) {
    if (list.kind != YamlNode::Kind::list)
      map_.wrong("controls", fmt::format("expected a list, got {}", list.describe()));
    for (const YamlNode& node : list.items) {
      const YamlMap map(node, map_.dotted("controls"), {"arm", "metric", "from", "to"}, errors_);
      if (!map.is_map()) continue;
      Control control{arm(map, "arm"), map.metric("metric")};
      control.from = map.get("from", control.from);
      control.to = map.get("to", control.to);
      if (!(control.from <= control.to))
        map.wrong("from", fmt::format("is {:g}, but must be at most 'to', {:g}; exchange them",
                                      control.from, control.to));
      if (control.metric && control.metric->is_of_seed())
        map.wrong("metric", "spans all learning rates; a control needs a metric of one run");
      claim_.controls.push_back(control);
    }
  }

  const ClaimsFile& file_;
  ConfigErrors& errors_;
  const YamlMap map_;
  Claim claim_;
};

}  // namespace

YamlMap::YamlMap(const YamlNode& node, std::string name, const std::vector<std::string>& known,
                 ConfigErrors& errors)
    : node_(&node), name_(std::move(name)), errors_(&errors) {
  if (!is_map())
    errors.add(node.location, fmt::format("{}: expected a map, got {}", name_, node.describe()));
  std::set<std::string> seen;
  for (const auto& [key, value] : node.pairs) {
    if (!known.empty() && std::ranges::find(known, key.text) == known.end()) {
      constexpr std::size_t kListed = 20;
      std::string remedy = system::did_you_mean(key.text, known);
      if (remedy.empty()) {
        remedy = known.size() > kListed
                     ? "; 'difftape config keys' lists all keys"
                     : fmt::format("; the keys of {} are {}", name_, fmt::join(known, ", "));
      }
      errors.add(key.location, fmt::format("unknown key '{}'{}", dotted(key.text), remedy));
    } else if (!seen.insert(key.text).second) {
      errors.add(key.location,
                 fmt::format("duplicate key '{}'; keep one of them", dotted(key.text)));
    }
  }
}

const YamlNode* YamlMap::find(const std::string& key) const {
  const auto found = std::ranges::find(node_->pairs, key, [](const auto& p) { return p.key.text; });
  return found == node_->pairs.end() ? nullptr : &found->value;
}

void YamlMap::require(const std::string& key) const {
  if (is_map() && !find(key))
    errors_->add(node_->location, fmt::format("{}: has no '{}'; add it", name_, key));
}

std::string YamlMap::required(const std::string& key) const {
  require(key);
  return get<std::string>(key, "");
}

const Quantity* YamlMap::metric(const std::string& key) const {
  const std::string name = required(key);
  if (name.empty()) return nullptr;
  const Quantity* found = find_quantity(name);
  if (found == nullptr) {
    const auto all = mapped(quantities(), [](auto& each) { return std::string(each.name); });
    const std::string meant = system::did_you_mean(name, all);
    wrong(key, fmt::format("no metric is named '{}'{}", name,
                           meant.empty() ? fmt::format("; the metrics are {}", fmt::join(all, ", "))
                                         : meant));
  }
  return found;
}

std::string YamlMap::dotted(const std::string& key) const {
  return name_.empty() ? key : fmt::format("{}.{}", name_, key);
}

void YamlMap::wrong(const std::string& key, const std::string& what) const {
  const YamlNode* node = find(key);
  errors_->add(node ? node->location : node_->location, fmt::format("{}: {}", dotted(key), what));
}

Seeds read_seeds(const YamlNode& list, const YamlMap& map, const std::string& key) {
  constexpr std::uint64_t kMost = 10000;  // seeds in a range
  Seeds seeds;
  if (list.kind != YamlNode::Kind::list || list.items.empty())
    map.wrong(key, fmt::format("expected a list of seeds, got {}", list.describe()));
  for (const YamlNode& item : list.items) {
    const std::string_view text = item.text;
    const std::size_t dots = text.find("..");
    const auto first = read_number<std::uint64_t>(text.substr(0, dots));
    const auto last = dots == text.npos ? first : read_number<std::uint64_t>(text.substr(dots + 2));
    if (!first || !last || *last < *first || *last - *first >= kMost) {
      map.wrong(key,
                fmt::format("expected seeds such as 11 or 11..18, at most {} in a range, got '{}'",
                            kMost, text));
      continue;
    }
    for (std::uint64_t more = 0; more <= *last - *first; ++more) seeds.push_back(*first + more);
  }
  std::set<std::uint64_t> seen;
  const auto twice =
      std::ranges::find_if(seeds, [&](auto seed) { return !seen.insert(seed).second; });
  if (twice != seeds.end()) map.wrong(key, fmt::format("has seed {} twice; remove one", *twice));
  return seeds;
}

Claim read_claim(const std::string& id, const YamlNode& node, const ClaimsFile& file,
                 ConfigErrors& errors) {
  return ClaimReader(id, node, file, errors).read();
}

}  // namespace difftape::study
