#include "train/study/compare/claims/claim_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "train/run/config/fields.h"
#include "train/system/suggest.h"

namespace difftape::study {

namespace {

using run::ConfigErrors;
using run::YamlNode;

constexpr const char* kNeedsFactor = "expected a factor above 0: this metric is compared by ratios";

/// A number that is all of a text; nothing if it is not.
template <class T>
std::optional<T> whole(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool all = error == std::errc() && end == text.data() + text.size();
  return all ? std::optional(value) : std::nullopt;
}

Regime read_regime(const YamlNode& node, const std::string& name, ConfigErrors& errors) {
  std::vector<std::string> known;
  for (const run::Field& field : run::fields()) known.push_back(field.key);
  const YamlMap map(node, name, known, errors);
  Regime regime;
  if (node.kind != YamlNode::Kind::map) return regime;
  for (const auto& [key, value] : node.pairs) {
    auto& [of, values] = regime.emplace_back(key.text, std::vector<std::string>{});
    if (value.kind == YamlNode::Kind::scalar) values.push_back(value.text);
    for (const YamlNode& item : value.items) values.push_back(item.text);
    if (values.empty()) map.wrong(key.text, "expected a value or a list of values");
  }
  return regime;
}

/// "own" or "4 x own", as a factor.
std::optional<double> own_factor(std::string_view text) {
  constexpr std::string_view kOwn = "own", kTimes = " x own";
  if (text == kOwn) return 1;
  if (!text.ends_with(kTimes)) return std::nullopt;
  const auto factor = whole<double>(text.substr(0, text.size() - kTimes.size()));
  return factor && std::isfinite(*factor) && *factor > 0 ? factor : std::nullopt;
}

}  // namespace

Seeds read_seeds(const YamlNode& list, const YamlMap& map, const std::string& key) {
  constexpr std::uint64_t kMost = 10000;  // of a range
  Seeds seeds;
  if (list.kind != YamlNode::Kind::list || list.items.empty())
    map.wrong(key, fmt::format("expected a list of seeds, got {}", list.describe()));
  for (const YamlNode& item : list.items) {
    const std::size_t dots = item.text.find("..");
    const auto first = whole<std::uint64_t>(std::string_view(item.text).substr(0, dots));
    const auto last = dots == std::string::npos
                          ? first
                          : whole<std::uint64_t>(std::string_view(item.text).substr(dots + 2));
    if (!first || !last || *last < *first || *last - *first >= kMost) {
      map.wrong(key, fmt::format("expected seeds such as 11 or 11..18, got '{}'", item.text));
      continue;
    }
    for (std::uint64_t seed = *first; seed <= *last; ++seed) seeds.push_back(seed);
  }
  if (std::set(seeds.begin(), seeds.end()).size() < seeds.size())
    map.wrong(key, "names a seed twice");
  return seeds;
}

Claim ClaimReader::read(const std::string& id, const YamlNode& node) const {
  const YamlMap map(node, "claims." + id,
                    {"statement", "source", "family", "endpoint", "arm", "reference", "value",
                     "compared_with", "metric", "where", "lr", "seeds", "slope_over", "mean_over",
                     "expect", "published", "controls", "planned_sd"},
                    *errors_);
  Claim claim;
  claim.id = id;
  claim.location = node.location;
  if (node.kind != YamlNode::Kind::map) return claim;
  claim.statement = map.required("statement");
  claim.source = map.get<std::string>("source", "");
  claim.family = map.get<std::string>("family", id);
  claim.endpoint = map.word("endpoint", Rank::exploratory);
  claim.arm = arm(map, "arm");
  if (map.find("value") == nullptr) claim.reference = arm(map, "reference");
  claim.metric = map.metric("metric");
  if (const YamlNode* where = map.find("where"))
    claim.where = read_regime(*where, map.dotted("where"), *errors_);
  if (map.find("compared_with") != nullptr) read_pair(map, claim);
  claim.expect = map.word("expect", Expect::lower);
  read_sizes(map, claim);
  read_rates(map, claim);
  take_margin(map, claim);
  read_numbers(map, claim);
  if (const YamlNode* controls = map.find("controls")) read_controls(*controls, map, claim);
  return claim;
}

std::string ClaimReader::arm(const YamlMap& map, const std::string& key) const {
  std::string name = map.required(key);
  std::vector<std::string> known;
  for (const ArmName& each : file_->arms) known.push_back(each.name);
  const bool unknown = !known.empty() && std::ranges::find(known, name) == known.end();
  if (unknown && !name.empty()) {
    map.wrong(key, fmt::format("'{}' is not in arms ({}){}", name, fmt::join(known, ", "),
                               system::did_you_mean(name, known)));
  }
  return name;
}

void ClaimReader::read_pair(const YamlMap& map, Claim& claim) const {
  const YamlMap other(*map.find("compared_with"), map.dotted("compared_with"),
                      {"arm", "reference", "where"}, *errors_);
  ArmPair pair{arm(other, "arm"), arm(other, "reference"), claim.where};
  if (const YamlNode* where = other.find("where")) {
    for (auto& [key, values] : read_regime(*where, other.dotted("where"), *errors_)) {
      std::erase_if(pair.where, [&](const auto& entry) { return entry.first == key; });
      pair.where.emplace_back(key, values);
    }
  }
  if (!pair.arm.empty() && pair.arm == pair.reference)
    map.wrong("compared_with", "names one arm twice");
  const bool same = pair.arm == claim.arm && pair.reference == claim.reference;
  if (!pair.arm.empty() && same && pair.where == claim.where)
    map.wrong("compared_with", "names the two arms of the claim itself");
  claim.compared_with = std::move(pair);
}

void ClaimReader::read_sizes(const YamlMap& map, Claim& claim) const {
  for (const auto& [key, over] :
       {std::pair("mean_over", Over::mean), {"slope_over", Over::slope}}) {
    if (map.find(key) == nullptr) continue;
    if (claim.over != Over::no_sizes)
      map.wrong(key, "stands instead of mean_over; keep one of them");
    static_cast<void>(map.get<std::string>(key, "", run::choices({"parameters"})));
    claim.over = over;
  }
  claim.seeds = file_->seeds;
  const YamlNode* seeds = map.find("seeds");
  if (seeds == nullptr) return;
  if (seeds->kind != YamlNode::Kind::map) {
    claim.seeds = read_seeds(*seeds, map, "seeds");
    return;
  }
  claim.seeds.clear();
  const YamlMap sizes(*seeds, map.dotted("seeds"), {}, *errors_);
  for (const auto& [key, list] : seeds->pairs) {
    const auto size = whole<Index>(key.text);
    if (!size || *size < 1)
      sizes.wrong(key.text, "expected a value of model.d_model, such as 64, before its seeds");
    claim.seeds_of_size[size.value_or(0)] = read_seeds(list, sizes, key.text);
  }
  if (claim.over == Over::no_sizes) {
    map.wrong("seeds", "names seeds by size, which needs mean_over or slope_over");
  } else if (claim.seeds_of_size.size() < 2) {
    map.wrong("seeds", "names one size, but must name two or more to compare over sizes");
  }
}

void ClaimReader::read_rates(const YamlMap& map, Claim& claim) const {
  if (const YamlNode* lr = map.find("lr")) {
    const std::vector<YamlNode> one{*lr};
    for (const YamlNode& item : lr->kind == YamlNode::Kind::list ? lr->items : one) {
      if (const auto factor = own_factor(item.text)) {
        claim.own_lr.push_back(*factor);
      } else {
        map.wrong("lr", fmt::format("expected own or 4 x own, got {}", item.describe()));
      }
    }
    std::ranges::sort(claim.own_lr);
    if (std::ranges::adjacent_find(claim.own_lr) != claim.own_lr.end())
      map.wrong("lr", "names a learning rate twice");
    if (file_->learning_rates.empty())
      map.wrong("lr", "needs 'learning_rates' at the top of the file: where lr_star stands");
    if (std::ranges::find(claim.where, "optim.lr", [](const auto& e) { return e.first; }) !=
        claim.where.end())
      map.wrong("lr", "stands instead of optim.lr in 'where'; keep one of them");
  }
  const bool penalty = claim.metric == find_quantity("lr_penalty") && claim.metric != nullptr;
  if (penalty && claim.own_lr.size() != 2)
    map.wrong("lr", "must name two learning rates for lr_penalty, such as [own, 4 x own]");
}

void ClaimReader::take_margin(const YamlMap& map, Claim& claim) const {
  if (claim.metric == nullptr) return;
  const std::string name = margin_name(claim);
  const auto found = file_->margins.find(name);
  if (found != file_->margins.end()) claim.margin = found->second.margin;
  const bool needs = claim.expect == Expect::equivalent || claim.expect == Expect::not_higher;
  if (!needs || !std::isnan(claim.margin)) return;
  map.wrong("expect", fmt::format("'{}' needs a margin; add {}: {{margin: ..., reason: ...}} to "
                                  "'margins' at the top of the file",
                                  to_string(claim.expect), name));
}

void ClaimReader::read_numbers(const YamlMap& map, Claim& claim) const {
  const bool ratio = claim.metric && claim.metric->scale == Scale::ratio;
  const auto is_number = [&](double x) { return !ratio || x > 0; };  // or a factor
  claim.value = map.get("value", kNone);
  if (map.find("value") && map.find("reference"))
    map.wrong("value", "stands instead of 'reference'; keep one of them");
  if (map.find("value") && map.find("compared_with"))
    map.wrong("compared_with", "needs 'reference', not 'value': it compares two differences");
  if (map.find("value") && claim.over != Over::no_sizes)
    map.wrong("value", "is one number for all sizes; compare with a 'reference' instead");
  if (map.find("value") && !is_number(claim.value)) map.wrong("value", kNeedsFactor);
  const auto published = map.get<std::vector<double>>("published", {});
  if (!std::ranges::all_of(published, is_number)) {
    map.wrong("published", kNeedsFactor);
  } else if (published.size() == 2 && published[0] <= published[1]) {
    claim.published_low = published[0];
    claim.published_high = published[1];
  } else if (map.find("published") != nullptr) {
    map.wrong("published", "expected two numbers, the lower first");
  }
  claim.planned_sd = map.get("planned_sd", kNone, run::above(ratio ? 1 : 0));
}

void ClaimReader::read_controls(const YamlNode& list, const YamlMap& of, Claim& claim) const {
  if (list.kind != YamlNode::Kind::list) {
    of.wrong("controls", fmt::format("expected a list, got {}", list.describe()));
    return;
  }
  for (const YamlNode& node : list.items) {
    const YamlMap map(node, of.dotted("controls"), {"arm", "metric", "from", "to"}, *errors_);
    if (node.kind != YamlNode::Kind::map) continue;
    Control control{arm(map, "arm"), map.metric("metric")};
    control.from = map.get("from", control.from);
    control.to = map.get("to", control.to);
    if (!(control.from <= control.to)) map.wrong("from", "is above 'to'");
    if (control.metric && control.metric->of_run == nullptr)
      map.wrong("metric", "is one of all learning rates; a control needs one of a run");
    claim.controls.push_back(control);
  }
}

}  // namespace difftape::study
