#include "train/study/compare/claims/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "train/run/config/writer.h"

namespace difftape::study {

namespace {

/// A kind of attention and what is changed of it.
struct RoleRow {
  ArmRole role;
  std::string_view words;  ///< what an arm must be
  std::string_view kind;
  void (*change)(AttentionConfig&) = [](AttentionConfig&) {};
};

constexpr RoleRow kRoles[] = {
    {ArmRole::softmax, "softmax (kind: softmax)", "softmax"},
    {ArmRole::v1, "V1 (kind: diff_v1)", "diff_v1"},
    {ArmRole::v2, "V2 (kind: diff_v2)", "diff_v2"},
    {ArmRole::cross_group, "V2 across groups (pairing: split_half)", "diff_v2",
     [](AttentionConfig& v2) { v2.pairing = Pairing::split_half; }},
    {ArmRole::no_sigmoid, "V2 without sigmoid (lambda: raw)", "diff_v2",
     [](AttentionConfig& v2) { v2.lambda = LambdaKind::raw; }},
    {ArmRole::no_lambda, "V2 without lambda (lambda: none)", "diff_v2",
     [](AttentionConfig& v2) { v2.lambda = LambdaKind::one; }},
    {ArmRole::v1_no_subln, "V1 without subln (subln: false)", "diff_v1",
     [](AttentionConfig& v1) { v1.subln = false; }},
};

const RoleRow& row_of(ArmRole role) { return *std::ranges::find(kRoles, role, &RoleRow::role); }

const RunRecord& first_run(const Arm& arm) { return *arm.conditions.front().runs.front(); }

bool has_role(const Arm& arm, ArmRole role) {
  const std::optional<AttentionConfig>& found = first_run(arm).attention;
  if (!found) return false;
  AttentionConfig wanted = plain_kind(row_of(role).kind, *found);
  row_of(role).change(wanted);
  return fields_of(*found) == fields_of(wanted);
}

/// A key of attention that no kind decides and in which the two differ.
std::optional<std::string> attention_difference(const AttentionConfig& a,
                                                const AttentionConfig& b) {
  run::Config first, second;
  first.model.attention = plain_kind("softmax", a);
  second.model.attention = plain_kind("softmax", b);
  const run::FlatConfig of_first = run::flat_config(first), of_second = run::flat_config(second);
  const auto [found, other] = std::ranges::mismatch(of_first, of_second);
  return found == of_first.end() ? std::nullopt : std::optional(found->first);
}

bool may_differ(const std::string& key) {
  return is_shared(key) || key == "model.d_ff" || key == "model.match_params" ||
         key.starts_with("model.attention.");
}

/// A key in which the arms differ, besides what makes a kind of attention.
std::optional<std::string> other_difference(const Arm& a, const Arm& b) {
  const RunRecord &first = first_run(a), &second = first_run(b);
  for (const auto& [key, value] : first.env.at("config").items()) {
    if (!may_differ(key) && second.config(key) != first.config(key)) return key;
  }
  return attention_difference(*first.attention, *second.attention);
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

std::string none_of_role(const Study& study, ArmRole role) {
  std::string unknown;
  for (const Arm& arm : study.arms) {
    if (first_run(arm).attention) continue;
    unknown += (unknown.empty() ? "" : ", ") + arm.name;
  }
  return fmt::format("no arm is {}{}{}", row_of(role).words,
                     unknown.empty() ? "" : "; this version cannot read the attention of ",
                     unknown);
}

}  // namespace

ArmPair find_pair(const Study& study, ArmRole role, ArmRole against) {
  const std::vector<const Arm*> arms = arms_of_role(study, role),
                                others = arms_of_role(study, against);
  for (const auto& [found, each] : {std::pair(&arms, role), std::pair(&others, against)}) {
    if (found->empty()) return {.reason = none_of_role(study, each)};
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
       {{&quantity("lr_sensitivity"), v1_no_subln, v1, kHigher}},
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
