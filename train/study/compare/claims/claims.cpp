#include "train/study/compare/claims/claims.h"

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

bool has_role(const Arm& arm, ArmRole role) {
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
std::vector<const Arm*> arms_of_role(const Study& study, ArmRole role) {
  std::vector<const Arm*> arms;
  for (const Arm& arm : study.arms) {
    const bool first = &arm == &study.arms[study.baseline];
    if (has_role(arm, role)) arms.insert(first ? arms.begin() : arms.end(), &arm);
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
  return "V1 without subln (subln: false)";
}

ArmPair find_pair(const Study& study, ArmRole role, ArmRole against) {
  const std::vector<const Arm*> arms = arms_of_role(study, role),
                                others = arms_of_role(study, against);
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

namespace {

constexpr auto kLower = Expected::lower, kHigher = Expected::higher, kEqual = Expected::equal,
               kNotHigher = Expected::not_higher;
constexpr const char *kPaper = "V1 paper", *kArticle = "V2 article",
                     *kBoth = "V1 paper and V2 article";

using enum ArmRole;

std::vector<Claim> make_claims() {
  return {
      {"v2_loss_best",
       "V2's loss is lower than the baseline's (published: by 0.02 to 0.03), each at its best "
       "learning rate",
       kArticle,
       {{&quantity("capped_val_loss"), v2, softmax, kLower}},
       "",
       "",
       -0.03,
       -0.02},
      {"v2_loss_equal",
       "V2's loss is lower than the baseline's (published: by 0.02 to 0.03) at equal learning "
       "rates",
       kArticle,
       {{&quantity("val_loss"), v2, softmax, kLower}},
       "",
       "",
       -0.03,
       -0.02},
      {"v2_loss_spikes",
       "V2 has fewer loss spikes than the baseline at large learning rates",
       kArticle,
       {{&quantity("spike_score_loss"), v2, softmax, kLower}}},
      {"v2_grad_spikes",
       "V2 has fewer gradient spikes than the baseline at large learning rates",
       kArticle,
       {{&quantity("spike_score_grad"), v2, softmax, kLower}}},
      {"v2_rates",
       "V2 trains at higher learning rates than the baseline",
       kArticle,
       {{&quantity("stable_lrs"), v2, softmax, kHigher}}},
      {"v1_loss_spikes",
       "V1 has fewer loss spikes than the baseline at large learning rates",
       kPaper,
       {{&quantity("spike_score_loss"), v1, softmax, kLower}}},
      {"v1_grad_spikes",
       "V1 has fewer gradient spikes than the baseline at large learning rates",
       kPaper,
       {{&quantity("spike_score_grad"), v1, softmax, kLower}}},
      {"v1_rates",
       "V1 trains at higher learning rates than the baseline",
       kPaper,
       {{&quantity("stable_lrs"), v1, softmax, kHigher}}},
      {"v1_late_growth",
       "V1's gradient norm grows more late in training than the baseline's",
       kArticle,
       {{&quantity("grad_norm_growth"), v1, softmax, kHigher}}},
      {"v1_late_variation",
       "V1's gradient norm varies more late in training than the baseline's",
       kArticle,
       {{&quantity("grad_norm_late_variation"), v1, softmax, kHigher}}},
      {"v2_late_growth",
       "V2's gradient norm grows late in training no more than the baseline's",
       kArticle,
       {{&quantity("grad_norm_growth"), v2, softmax, kNotHigher}}},
      {"v2_late_variation",
       "V2's gradient norm varies late in training no more than the baseline's",
       kArticle,
       {{&quantity("grad_norm_late_variation"), v2, softmax, kNotHigher}}},
      {"v1_top_logit",
       "V1's largest attention logit is smaller than the baseline's",
       "V1 paper, Table 5",
       {{&quantity("attention_logit"), v1, softmax, kLower}}},
      {"v1_top_hidden",
       "V1's largest hidden state is smaller than the baseline's",
       "V1 paper, Table 5",
       {{&quantity("hidden_state"), v1, softmax, kLower}}},
      {"v1_kurtosis",
       "V1's hidden states have less kurtosis than the baseline's",
       kPaper,
       {{&quantity("kurtosis"), v1, softmax, kLower}}},
      {"v2_top_logit",
       "V2's largest attention logit is smaller than the baseline's",
       kArticle,
       {{&quantity("attention_logit"), v2, softmax, kLower}}},
      {"v2_top_hidden",
       "V2's largest hidden state is smaller than the baseline's",
       kArticle,
       {{&quantity("hidden_state"), v2, softmax, kLower}}},
      {"v2_kurtosis",
       "V2's hidden states have less kurtosis than the baseline's",
       kArticle,
       {{&quantity("kurtosis"), v2, softmax, kLower}}},
      {"v2_sink_rate",
       "V2 has a lower sink rate than the baseline",
       kArticle,
       {{&quantity("sink_rate"), v2, softmax, kLower}}},
      {"v2_first_token",
       "V2 attends less to the first token than the baseline",
       kArticle,
       {{&quantity("first_token"), v2, softmax, kLower}}},
      {"ablation_order_sensitivity",
       "lr sensitivity: most across groups, then without sigmoid; without lambda as V2",
       kArticle,
       {{&quantity("lr_sensitivity"), cross_group, no_sigmoid, kHigher},
        {&quantity("lr_sensitivity"), no_sigmoid, no_lambda, kHigher},
        {&quantity("lr_sensitivity"), no_lambda, v2, kEqual}}},
      {"ablation_order_steps",
       "unstable steps: most across groups, then without sigmoid; without lambda as V2",
       kArticle,
       {{&quantity("unstable_steps"), cross_group, no_sigmoid, kHigher},
        {&quantity("unstable_steps"), no_sigmoid, no_lambda, kHigher},
        {&quantity("unstable_steps"), no_lambda, v2, kEqual}}},
      {"cross_group_loss",
       "V2 that pairs heads across groups has a higher loss than V2",
       kArticle,
       {{&quantity("capped_val_loss"), cross_group, v2, kHigher}}},
      {"no_sigmoid_loss",
       "V2 without the sigmoid has a higher loss than V2",
       kArticle,
       {{&quantity("capped_val_loss"), no_sigmoid, v2, kHigher}}},
      {"no_lambda_loss",
       "V2 without lambda has a higher loss than V2",
       kArticle,
       {{&quantity("capped_val_loss"), no_lambda, v2, kHigher}}},
      {"no_lambda_context_rms",
       "V2 without lambda has a near-zero context RMS beside V2 after the first step",
       kArticle,
       {{&quantity("first_context_rms"), no_lambda, v2, kLower}}},
      {"v1_norm",
       "V1 without subln is less stable (V1 paper, Table 6), against: subln makes V1 unstable (V2 "
       "article)",
       kBoth,
       {{&quantity("lr_sensitivity"), v1_no_norm, v1, kHigher}},
       "as the V1 paper says",
       "the opposite holds, as the V2 article says"},
  };
}

}  // namespace

std::span<const Claim> claims() {
  static const std::vector<Claim> list = make_claims();
  return list;
}

}  // namespace difftape::study
