#include "train/study/compare/claims/roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "train/run/config/reader.h"

namespace difftape::study {

namespace {

/// The attention of a role, with what no kind decides as in `like`.
AttentionConfig attention_of(ArmRole role, const AttentionConfig& like) {
  switch (role) {
    case ArmRole::softmax:
      return plain_kind("softmax", like);
    case ArmRole::v1:
      return plain_kind("diff_v1", like);
    case ArmRole::v1_no_norm: {
      AttentionConfig v1 = plain_kind("diff_v1", like);
      v1.subln = false;
      return v1;
    }
    default:
      break;
  }
  AttentionConfig v2 = plain_kind("diff_v2", like);
  if (role == ArmRole::cross_group) v2.pairing = Pairing::split_half;
  if (role == ArmRole::no_sigmoid) v2.lambda = LambdaKind::raw;
  if (role == ArmRole::no_lambda) v2.lambda = LambdaKind::one;
  return v2;
}

const RunRecord& first_run(const Arm& arm) { return *arm.conditions.front().runs.front(); }

/// The attention that a run was made with, read as any configuration is. Nothing if it has keys or
/// words that this program does not know.
std::optional<AttentionConfig> attention_of(const RunRecord& run) {
  std::string text;
  for (const auto& [key, value] : run.env.at("config").items()) {
    if (!key.starts_with("model.attention.")) continue;
    text += fmt::format("{}: {}\n", key, value.get<std::string>());
  }
  try {
    return run::config_from_yaml(text, "env.json").model.attention;
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

bool plays(const Arm& arm, ArmRole role) {
  const std::optional<AttentionConfig> found = attention_of(first_run(arm));
  return found && fields_of(*found) == fields_of(attention_of(role, *found));
}

bool may_differ(const std::string& key) {
  return is_shared(key) || key == "model.d_ff" || key == "model.match_params" ||
         (key.starts_with("model.attention.") && key != "model.attention.qk_norm" &&
          key != "model.attention.sliding_window");
}

/// A key besides attention in which the arms differ.
std::optional<std::string> other_difference(const Arm& a, const Arm& b) {
  for (const auto& [key, value] : first_run(a).env.at("config").items()) {
    if (!may_differ(key) && first_run(b).config(key) != first_run(a).config(key)) return key;
  }
  return std::nullopt;
}

/// The arms of a role, the baseline first.
std::vector<const Arm*> players(const Study& study, ArmRole role) {
  std::vector<const Arm*> arms;
  for (const Arm& arm : study.arms) {
    const bool first = &arm == &study.arms[study.baseline];
    if (plays(arm, role)) arms.insert(first ? arms.begin() : arms.end(), &arm);
  }
  return arms;
}

}  // namespace

std::string_view role_words(ArmRole role) {
  switch (role) {
    case ArmRole::softmax:
      return "softmax (kind: softmax)";
    case ArmRole::v1:
      return "V1 (kind: diff_v1)";
    case ArmRole::v2:
      return "V2 (kind: diff_v2)";
    case ArmRole::cross_group:
      return "V2 across groups (pairing: split_half)";
    case ArmRole::no_sigmoid:
      return "V2 without sigmoid (lambda: raw)";
    case ArmRole::no_lambda:
      return "V2 without lambda (lambda: none)";
    case ArmRole::v1_no_norm:
      break;
  }
  return "V1 without its norm (subln: false)";
}

ArmPair find_pair(const Study& study, ArmRole role, ArmRole against) {
  const std::vector<const Arm*> arms = players(study, role), others = players(study, against);
  for (const auto& [found, each] : {std::pair(&arms, role), std::pair(&others, against)}) {
    if (found->empty()) return {.reason = fmt::format("no arm is {}", role_words(each))};
  }
  for (const Arm* arm : arms) {
    for (const Arm* other : others) {
      if (!other_difference(*arm, *other)) return {arm, other};
    }
  }
  return {.reason =
              fmt::format("{} and {} also differ in {}", arms.front()->name, others.front()->name,
                          *other_difference(*arms.front(), *others.front()))};
}

}  // namespace difftape::study
