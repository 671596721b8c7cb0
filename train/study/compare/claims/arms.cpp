#include "train/study/compare/claims/arms.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "train/run/config/fields.h"
#include "train/run/config/reader.h"
#include "train/run/config/writer.h"
#include "train/study/compare/study.h"
#include "train/study/compare/tasks.h"
#include "train/system/suggest.h"

namespace difftape::study {

namespace {

constexpr std::string_view kAttention = "model.attention.";

std::optional<double> as_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? std::optional(value) : std::nullopt;
}

bool same_value(const std::string& a, const std::string& b) {
  const auto x = as_number(a), y = as_number(b);
  return x && y ? *x == *y : a == b;
}

std::string number_text(double value) { return fmt::format("{:g}", value); }

bool is_meant(const RunRecord& run, const Regime& where) {
  return matches(where, [&](const std::string& key) { return run.value(key); });
}

std::vector<ArmRuns> arms_in(const Regime& where, std::span<const RunRecord* const> runs) {
  std::vector<ArmRuns> arms;
  for (const RunRecord* run : runs) {
    if (!is_meant(*run, where)) continue;
    auto arm = std::ranges::find(arms, run->arm, &ArmRuns::name);
    if (arm == arms.end()) arm = arms.insert(arm, {run->arm, {}});
    arm->runs.push_back(run);
  }
  return arms;
}

/// The attention of an arm that is called by it, in a model that is otherwise as `run`: what no
/// kind decides and the claim does not say is as there.
AttentionConfig wanted_attention(const run::YamlNode& said, const RunRecord& run) {
  run::ConfigErrors errors;
  run::Assignments given(errors);
  run::Config like;
  const auto kind = std::ranges::find(said.pairs, "kind", [](const auto& p) { return p.key.text; });
  like.model.attention = plain_kind(kind->value.text, *run.attention);
  for (const auto& [key, value] : flat_config(like)) {
    if (key.starts_with(kAttention)) given.add_value(key, value, said.location);
  }
  for (const auto& [key, value] : said.pairs) {
    given.add_node(std::string(kAttention) + key.text, value);
  }
  return given.resolve().config.model.attention;
}

bool has_attention(const ArmRuns& arm, const run::YamlNode& said) {
  const RunRecord& run = *arm.runs.front();
  return run.attention && fields_of(*run.attention) == fields_of(wanted_attention(said, run));
}

std::string words(const run::YamlNode& attention) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : attention.pairs) {
    parts.push_back(fmt::format("{}: {}", key.text, value.text));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string none_called(const std::string& name, const ArmName* rule,
                        const std::vector<ArmRuns>& arms) {
  if (arms.empty()) return "no run matches 'where'";
  std::vector<std::string> names, unknown;
  for (const ArmRuns& arm : arms) {
    names.push_back(arm.name);
    if (!arm.runs.front()->attention) unknown.push_back(arm.name);
  }
  if (rule == nullptr || !rule->attention) {
    return fmt::format("no arm is called {}{}; there are {}", name,
                       system::did_you_mean(name, names), fmt::join(names, ", "));
  }
  return fmt::format("no arm is {} ({}){}{}", name, words(*rule->attention),
                     unknown.empty() ? "" : "; this version cannot read the attention of ",
                     fmt::join(unknown, ", "));
}

const ArmName* rule_of(const std::string& name, const ClaimsFile& file) {
  const auto found = std::ranges::find(file.arms, name, &ArmName::name);
  return found == file.arms.end() ? nullptr : &*found;
}

/// A key of attention that no kind decides and in which the two differ.
std::optional<std::string> attention_difference(const AttentionConfig& a,
                                                const AttentionConfig& b) {
  run::Config first, second;
  first.model.attention = plain_kind("softmax", a);
  second.model.attention = plain_kind("softmax", b);
  const auto found = run::differences(first, second);
  return found.empty() ? std::nullopt : std::optional(found.front().key);
}

/// A key in which the arms differ, besides what makes a kind of attention.
std::optional<std::string> other_difference(const ArmRuns& a, const ArmRuns& b) {
  const RunRecord &first = *a.runs.front(), &second = *b.runs.front();
  for (const std::string& key : differing_keys(first, second)) {
    if (run::has_flag(key, run::kOfArm) && !run::has_flag(key, run::kOfAttention)) return key;
  }
  return attention_difference(*first.attention, *second.attention);
}

}  // namespace

bool matches(const Regime& where,
             const std::function<std::string(const std::string& key)>& value_of) {
  return std::ranges::all_of(where, [&](const auto& entry) {
    const std::string found = value_of(entry.first);
    return std::ranges::any_of(entry.second,
                               [&](const std::string& each) { return same_value(each, found); });
  });
}

std::vector<ArmRuns> arms_called(const std::string& name, const ClaimsFile& file,
                                 const Regime& where, std::span<const RunRecord* const> runs,
                                 std::string& reason) {
  const std::vector<ArmRuns> arms = arms_in(where, runs);
  const ArmName* rule = rule_of(name, file);
  std::vector<ArmRuns> found;
  for (const ArmRuns& arm : arms) {
    const bool by_attention = rule && rule->attention;
    if (by_attention ? has_attention(arm, *rule->attention) : arm.name == name)
      found.push_back(arm);
  }
  if (found.empty()) reason = none_called(name, rule, arms);
  return found;
}

std::optional<std::pair<ArmRuns, ArmRuns>> find_arms(const Claim& claim, const ClaimsFile& file,
                                                     std::span<const RunRecord* const> runs,
                                                     std::string& reason) {
  const auto arms = arms_called(claim.arm, file, claim.where, runs, reason);
  if (arms.empty()) return std::nullopt;
  if (claim.has_value()) return std::pair(arms.front(), ArmRuns{number_text(claim.value), {}});
  const auto others = arms_called(claim.reference, file, claim.where, runs, reason);
  if (others.empty()) return std::nullopt;
  const ArmName *rule = rule_of(claim.arm, file), *other_rule = rule_of(claim.reference, file);
  const bool by_attention = rule && rule->attention && other_rule && other_rule->attention;
  for (const ArmRuns& arm : arms) {
    for (const ArmRuns& other : others) {
      if (!by_attention || !other_difference(arm, other)) return std::pair(arm, other);
    }
  }
  reason = fmt::format("{} and {} also differ in {}", arms.front().name, others.front().name,
                       *other_difference(arms.front(), others.front()));
  return std::nullopt;
}

std::string mixture(const ArmRuns& arm) {
  for (const RunRecord* run : arm.runs) {
    const RunRecord& first = *arm.runs.front();
    std::vector<std::string> keys = differing_keys(first, *run);
    std::erase_if(keys, [](const auto& key) { return !run::has_flag(key, run::kOfArm); });
    const std::string data = task_difference(first, *run);
    if (keys.empty() && data.empty()) continue;
    return fmt::format("runs of {} differ in {}: {} and {}; let 'where' say which are meant",
                       arm.name,
                       keys.empty() ? "their data" : fmt::format("{}", fmt::join(keys, ", ")),
                       first.dir.string(), run->dir.string());
  }
  return "";
}

}  // namespace difftape::study
