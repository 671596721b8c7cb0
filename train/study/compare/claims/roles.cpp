#include "train/study/compare/claims/roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "core/error.h"
#include "layers/attention/fields.h"

namespace difftape::study {

namespace {

AttentionFields fields_of_role(ArmRole role) {
  AttentionFields fields = role == ArmRole::softmax                             ? softmax_preset()
                           : role == ArmRole::v1 || role == ArmRole::v1_no_norm ? diff_v1_preset()
                                                                                : diff_v2_preset();
  if (role == ArmRole::cross_group) fields.pairing = Pairing::split_half;
  if (role == ArmRole::no_sigmoid) fields.lambda = LambdaKind::raw;
  if (role == ArmRole::no_lambda) fields.lambda = LambdaKind::one;
  if (role == ArmRole::v1_no_norm) fields.head_norm = false;
  return fields;
}

const RunRecord& first_run(const Arm& arm) { return *arm.conditions.front().runs.front(); }

bool plays(const Arm& arm, ArmRole role) {
  const RunRecord& run = first_run(arm);
  AttentionConfig config;
  for (const auto& [key, member] : {std::pair("kind", &config.kind),
                                    {"pairing", &config.pairing},
                                    {"lambda", &config.lambda},
                                    {"lambda_init", &config.lambda_init},
                                    {"normaliser", &config.normaliser},
                                    {"subln", &config.subln},
                                    {"gate", &config.gate}}) {
    const std::string value = run.config(fmt::format("model.attention.{}", key));
    if (!value.empty()) *member = value;
  }
  try {
    AttentionFields found = attention_fields(config), wanted = fields_of_role(role);
    found.lambda_init_value = wanted.lambda_init_value = 0;  // no role has a constant lambda_init
    return found == wanted;
  } catch (const ConfigError&) {
    return false;  // made with fields that this program does not know
  }
}

bool may_differ(const std::string& key) {
  return is_shared(key) || key == "model.d_ff" || key == "model.match" ||
         (key.starts_with("model.attention.") && key != "model.attention.qk_norm" &&
          key != "model.attention.window");
}

/// A key besides attention in which the arms differ.
std::optional<std::string> other_difference(const Arm& a, const Arm& b) {
  for (const auto& [key, value] : first_run(a).env.at("config").items()) {
    if (!may_differ(key) && first_run(b).config(key) != value.get<std::string>()) return key;
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
