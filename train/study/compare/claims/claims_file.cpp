#include "train/study/compare/claims/claims_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "core/digest.h"
#include "train/run/config/fields.h"
#include "train/run/config/reader.h"
#include "train/study/compare/claims/claim_reader.h"
#include "train/study/compare/row.h"
#include "train/system/files.h"

namespace difftape::study {

namespace {

using run::ConfigErrors;
using run::YamlNode;

std::vector<std::string> read_arms(const YamlNode& node, ConfigErrors& errors) {
  const YamlMap map(node, "arms", {}, errors);
  std::vector<std::string> arms;
  for (const auto& [key, value] : node.pairs) {
    arms.push_back(key.text);
    if (value.kind != YamlNode::Kind::null)
      map.wrong(key.text, fmt::format("expected nothing after the name of an arm, got {}; arms are "
                                      "found by run.arm",
                                      value.describe()));
  }
  return arms;
}

/// Returns the metric of a margin, which applies to differences or to their slope.
const Quantity* metric_of_margin(const std::string& name) {
  if (!name.ends_with(kPerDecade)) return find_quantity(name);
  return find_quantity(name.substr(0, name.size() - kPerDecade.size()));
}

std::map<std::string, Margin> read_margins(const YamlNode& node, ConfigErrors& errors) {
  std::vector<std::string> known;
  for (const Quantity& each : quantities()) {
    known.emplace_back(each.name);
    known.push_back(fmt::format("{}{}", each.name, kPerDecade));
  }
  const YamlMap map(node, "margins", known, errors);
  std::map<std::string, Margin> margins;
  for (const auto& [key, value] : node.pairs) {
    const Quantity* metric = metric_of_margin(key.text);
    const YamlMap each(value, map.dotted(key.text), {"margin", "reason"}, errors);
    if (metric == nullptr || !each.is_map()) continue;
    each.require("margin");
    const double least = metric->scale == Scale::ratio ? 1 : 0;
    margins[key.text] = {each.get("margin", kNone, run::above(least)), each.required("reason")};
  }
  return margins;
}

/// Checks that each family has one primary claim, before its secondary ones.
void check_families(const ClaimsFile& file, ConfigErrors& errors) {
  std::set<std::string> primaries;
  for (const Claim& claim : file.claims) {
    const bool has = primaries.contains(claim.family);
    if (claim.endpoint == Rank::primary && has) {
      errors.add(claim.location, fmt::format("claims.{}: family '{}' already has a primary claim; "
                                             "make this one secondary or change its family",
                                             claim.id, claim.family));
    } else if (claim.endpoint == Rank::secondary && !has) {
      errors.add(claim.location,
                 fmt::format("claims.{}: is secondary, but family '{}' has no primary claim before "
                             "it; add one",
                             claim.id, claim.family));
    }
    if (claim.endpoint == Rank::primary) primaries.insert(claim.family);
  }
}

}  // namespace

double Claim::on_axis(double difference) const {
  return metric->scale == Scale::ratio ? std::log(difference) : difference;
}

bool Claim::counts(std::uint64_t seed) const {
  const auto has = [seed](const Seeds& of) { return std::ranges::count(of, seed) > 0; };
  if (seeds_of_size.empty()) return seeds.empty() || has(seeds);
  return std::ranges::any_of(seeds_of_size, [&](const auto& each) { return has(each.second); });
}

std::vector<Index> Claim::planned_pairs() const {
  if (seeds_of_size.empty()) return {std::ssize(seeds)};
  return mapped(seeds_of_size, [](const auto& each) -> Index { return std::ssize(each.second); });
}

std::string margin_name(const Claim& claim) {
  return fmt::format("{}{}", claim.metric->name, claim.over == Over::slope ? kPerDecade : "");
}

double Claim::margin_on_axis() const { return std::isnan(margin) ? kNone : on_axis(margin); }

ClaimsFile claims_from_text(const std::string& text, const std::string& path) {
  ConfigErrors errors;
  ClaimsFile file;
  file.path = path;
  file.text = text;
  file.digest = digest_of(text);
  const auto root = parse_yaml(text, path, run::YamlSource::file, errors);
  errors.throw_if_any();
  const YamlMap map(*root, "", {"alpha", "seeds", "learning_rates", "margins", "arms", "claims"},
                    errors);
  errors.throw_if_any();
  file.alpha = map.get("alpha", file.alpha, run::strictly_between(0, 1));
  if (const YamlNode* seeds = map.find("seeds")) file.seeds = read_seeds(*seeds, map, "seeds");
  file.learning_rates = map.get<std::string>("learning_rates", "");
  const std::string& rates = file.learning_rates;  // a sweep copies both next to its runs
  if (map.find("learning_rates") && (rates.empty() || rates.find('/') != std::string::npos)) {
    map.wrong("learning_rates",
              fmt::format(
                  "is '{}', but must be the name of a file in the same folder; copy the file there",
                  rates));
  }
  if (const YamlNode* margins = map.find("margins")) file.margins = read_margins(*margins, errors);
  if (const YamlNode* arms = map.find("arms")) file.arms = read_arms(*arms, errors);
  const YamlNode* claims = map.find("claims");
  if (claims == nullptr || claims->pairs.empty()) {
    errors.add({path, 1, 1}, "there are no claims; add a map 'claims'");
  } else {
    const YamlMap named(*claims, "claims", {}, errors);  // reports duplicates
    for (const auto& [id, node] : claims->pairs)
      file.claims.push_back(read_claim(id.text, node, file, errors));
    check_families(file, errors);
  }
  errors.throw_if_any();
  return file;
}

ClaimsFile load_claims(const std::string& path) {
  const std::string found = system::here_or_shared(path);
  ClaimsFile file = claims_from_text(system::read_text(found), found);
  if (file.learning_rates.empty()) return file;
  const auto rates = std::filesystem::path(found).parent_path() / file.learning_rates;
  if (!std::filesystem::exists(rates)) return file;
  file.own_rates = read_own_rates(rates);
  file.rates_digest = digest_of(system::read_text(rates));
  return file;
}

}  // namespace difftape::study
