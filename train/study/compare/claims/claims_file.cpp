#include "train/study/compare/claims/claims_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/digest.h"
#include "train/run/config/fields.h"
#include "train/run/config/reader.h"
#include "train/stats/decision.h"
#include "train/study/compare/claims/yaml_map.h"
#include "train/system/files.h"
#include "train/system/shared.h"
#include "train/system/suggest.h"

namespace difftape::study {

namespace {

using run::ConfigErrors;
using run::YamlNode;

Regime read_where(const YamlNode& node, const std::string& name, ConfigErrors& errors) {
  std::vector<std::string> known;
  for (const run::Field& field : run::fields()) known.push_back(field.key);
  const YamlMap map(node, name, known, errors);
  Regime where;
  if (node.kind != YamlNode::Kind::map) return where;
  for (const auto& [key, value] : node.pairs) {
    auto& [of, values] = where.emplace_back(key.text, std::vector<std::string>{});
    if (value.kind == YamlNode::Kind::scalar) values.push_back(value.text);
    for (const YamlNode& item : value.items) values.push_back(item.text);
    if (values.empty()) map.wrong(key.text, "expected a value or a list of values");
  }
  return where;
}

/// The attention that stands for a name, checked as any configuration is.
void check_attention(const YamlNode& node, ConfigErrors& errors) {
  run::Assignments given(errors);
  for (const auto& [key, value] : node.pairs) given.add_node("model.attention." + key.text, value);
  given.resolve();
}

std::vector<ArmName> read_arms(const YamlNode& node, ConfigErrors& errors) {
  std::vector<std::string> fields;
  for (const run::Field& field : run::fields()) {
    constexpr std::string_view kSection = "model.attention.";
    if (field.key.starts_with(kSection)) fields.push_back(field.key.substr(kSection.size()));
  }
  const YamlMap map(node, "arms", {}, errors);
  std::vector<ArmName> arms;
  if (node.kind != YamlNode::Kind::map) return arms;
  for (const auto& [key, value] : node.pairs) {
    ArmName& arm = arms.emplace_back(ArmName{key.text, {}});
    if (value.kind == YamlNode::Kind::null) continue;
    const YamlMap attention(value, "arms." + key.text, fields, errors);
    if (value.kind != YamlNode::Kind::map) continue;
    if (attention.find("kind") == nullptr) attention.wrong("kind", "is missing");
    check_attention(value, errors);
    arm.attention = value;
  }
  return arms;
}

class ClaimReader {
 public:
  ClaimReader(const ClaimsFile& file, ConfigErrors& errors) : file_(&file), errors_(&errors) {}

  Claim read(const std::string& id, const YamlNode& node) const {
    const YamlMap map(node, "claims." + id,
                      {"statement", "source", "family", "endpoint", "arm", "reference", "value",
                       "compared_with", "metric", "where", "expect", "margin", "published",
                       "controls", "plan", "if_supported", "if_contradicted"},
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
    if (const YamlNode* pair = map.find("compared_with")) {
      const YamlMap other(*pair, map.dotted("compared_with"), {"arm", "reference"}, *errors_);
      claim.compared_with = ArmPair{arm(other, "arm"), arm(other, "reference")};
      check_pair(map, claim);
    }
    claim.metric = map.metric("metric");
    if (const YamlNode* where = map.find("where"))
      claim.where = read_where(*where, map.dotted("where"), *errors_);
    claim.expect = map.word("expect", Expect::lower);
    read_numbers(map, claim);
    if (const YamlNode* controls = map.find("controls")) read_controls(*controls, map, claim);
    claim.if_supported = map.get<std::string>("if_supported", "");
    claim.if_contradicted = map.get<std::string>("if_contradicted", "");
    return claim;
  }

 private:
  std::string arm(const YamlMap& map, const std::string& key) const {
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

  static void check_pair(const YamlMap& map, const Claim& claim) {
    const auto& [first, second] = *claim.compared_with;
    if (first.empty() || second.empty()) return;
    if (first == second) map.wrong("compared_with", "names one arm twice");
    if (first == claim.arm && second == claim.reference)
      map.wrong("compared_with", "names the two arms of the claim itself");
  }

  /// The numbers of a claim and whether they fit together.
  void read_numbers(const YamlMap& map, Claim& claim) const {
    const bool ratio = claim.metric && claim.metric->scale == Scale::ratio;
    const auto is_number = [&](double x) { return !ratio || x > 0; };  // or a factor
    claim.margin = map.get("margin", kNone, run::above(ratio ? 1 : 0));
    claim.value = map.get("value", kNone);
    if (map.find("value") && map.find("reference"))
      map.wrong("value", "stands instead of 'reference'; keep one of them");
    if (map.find("value") && map.find("compared_with"))
      map.wrong("compared_with", "needs 'reference', not 'value': it compares two differences");
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
    const bool needs = claim.expect == Expect::equivalent || claim.expect == Expect::not_higher;
    if (needs && map.find("margin") == nullptr) {
      map.wrong("margin", fmt::format("is missing; '{}' needs the difference up to which two arms "
                                      "are alike",
                                      to_string(claim.expect)));
    }
    const YamlNode* plan = map.find("plan");
    if (plan == nullptr) return;
    const YamlMap planned(*plan, map.dotted("plan"), {"spread", "effect"}, *errors_);
    claim.planned_spread = planned.get("spread", kNone, run::above(ratio ? 1 : 0));
    claim.planned_effect = planned.get("effect", kNone);
    if (planned.find("effect") && !is_number(claim.planned_effect))
      planned.wrong("effect", kNeedsFactor);
  }

  void read_controls(const YamlNode& list, const YamlMap& of, Claim& claim) const {
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

  static constexpr const char* kNeedsFactor =
      "expected a factor above 0: this quantity is compared by ratios";

  const ClaimsFile* file_;
  ConfigErrors* errors_;
};

void check_seeds(const YamlMap& map, const ClaimsFile& file) {
  const std::set<std::uint64_t> different(file.seeds.begin(), file.seeds.end());
  if (different.size() < file.seeds.size()) map.wrong("seeds", "names a seed twice");
  const auto needed = static_cast<std::size_t>(stats::kLooks.back().pairs);
  if (file.looks && !file.seeds.empty() && file.seeds.size() != needed)
    map.wrong("seeds", fmt::format("has {} seeds; looks need {}", file.seeds.size(), needed));
}

/// One primary claim a family, before its secondary ones.
void check_families(const ClaimsFile& file, ConfigErrors& errors) {
  std::set<std::string> primaries;
  for (const Claim& claim : file.claims) {
    const bool has = primaries.contains(claim.family);
    if (claim.endpoint == Rank::primary && has) {
      errors.add(claim.location, fmt::format("claims.{}: family '{}' has a primary claim already; "
                                             "one is decided, the others are secondary",
                                             claim.id, claim.family));
    } else if (claim.endpoint == Rank::secondary && !has) {
      errors.add(claim.location,
                 fmt::format("claims.{}: secondary, but family '{}' has no primary claim before it",
                             claim.id, claim.family));
    }
    if (claim.endpoint == Rank::primary) primaries.insert(claim.family);
  }
}

}  // namespace

double Claim::on_axis(double difference) const {
  return metric->scale == Scale::ratio ? std::log(difference) : difference;
}

std::vector<std::string> Claim::arms() const {
  std::vector<std::string> names{arm};
  if (!has_value()) names.push_back(reference);
  if (compared_with) names.insert(names.end(), {compared_with->arm, compared_with->reference});
  return names;
}

double Claim::margin_on_axis() const { return std::isnan(margin) ? kNone : on_axis(margin); }

ClaimsFile claims_from_text(const std::string& text, const std::string& path) {
  ConfigErrors errors;
  ClaimsFile file;
  file.path = path;
  file.text = text;
  Digest digest;
  digest.add(text);
  file.digest = digest.hex();
  const auto root = parse_yaml(text, path, run::YamlSource::file, errors);
  errors.throw_if_any();
  const YamlMap map(*root, "", {"alpha", "seeds", "looks", "arms", "claims"}, errors);
  errors.throw_if_any();
  file.alpha = map.get("alpha", file.alpha, run::strictly_between(0, 1));
  for (const Index seed : map.get<std::vector<Index>>("seeds", {}, run::at_least(0))) {
    file.seeds.push_back(static_cast<std::uint64_t>(seed));
  }
  file.looks = map.get("looks", false);
  check_seeds(map, file);
  if (const YamlNode* arms = map.find("arms")) file.arms = read_arms(*arms, errors);
  const YamlNode* claims = map.find("claims");
  if (claims == nullptr || claims->pairs.empty()) {
    errors.add({path, 1, 1}, "no claims; need a map 'claims'");
  } else {
    const YamlMap named(*claims, "claims", {}, errors);  // says what is twice
    for (const auto& [id, node] : claims->pairs) {
      file.claims.push_back(ClaimReader(file, errors).read(id.text, node));
    }
    check_families(file, errors);
  }
  errors.throw_if_any();
  return file;
}

ClaimsFile load_claims(const std::string& path) {
  const std::string found = system::here_or_shared(path);
  return claims_from_text(system::read_text(found), found);
}

}  // namespace difftape::study
