#include "layers/attention/kinds.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"

namespace difftape {

struct AttentionKind::Row {
  std::string_view name, source;
  AttentionFields fields{};
};

/// Every kind, in alphabetical order.
std::span<const AttentionKind::Row> AttentionKind::rows() {
  static constexpr Row kRows[] = {
      // H/2 pairs of heads with values of twice the width; one lambda a layer; each head is
      // normalised and scaled by 1 - lambda_init.
      {.name = "diff_v1",
       .source = "Ye et al. 2024, Differential Transformer",
       .fields = {.mapping = MappingKind::paired,
                  .lambda = LambdaKind::exponential,
                  .subln = true}},
      // Twice the query heads over the baseline's keys and values; lambda is projected from the
      // input for each token and head; no norm after.
      {.name = "diff_v2",
       .source = "Ye et al. 2026, Differential Transformer V2",
       .fields = {.mapping = MappingKind::doubled, .lambda = LambdaKind::sigmoid}},
      // The context is multiplied by a sigmoid gate of the input.
      {.name = "gated",
       .source = "Qiu et al. 2025, Gated Attention",
       .fields = {.gate = Gate::elementwise}},
      // exp of a learned logit, one a head, is added to the denominator.
      {.name = "sink",
       .source = "OpenAI 2025, gpt-oss",
       .fields = {.softmax_denominator = SoftmaxDenominator::sink}},
      // The baseline: causal grouped-query attention.
      {.name = "softmax", .source = "Vaswani et al. 2017; Ainslie et al. 2023"},
      // 1 is added to the denominator, so that a head can attend to nothing.
      {.name = "softmax1",
       .source = "Miller 2023, Attention Is Off By One",
       .fields = {.softmax_denominator = SoftmaxDenominator::softmax1}},
      // The baseline with twice the query heads, and so twice the width before the output
      // projection: what V2 is compared with at the same query width.
      {.name = "softmax_2h",
       .source = "Ye et al. 2026, section \"parameters and FLOPs\"",
       .fields = {.query_multiple = 2}},
  };
  return kRows;
}

const AttentionKind::Row* AttentionKind::find(std::string_view name) {
  const std::span<const Row> all = rows();
  const auto found = std::ranges::find(all, name, &Row::name);
  if (found == all.end()) {
    throw ConfigError(fmt::format("model.attention.kind: '{}' is not one of {}", name,
                                  fmt::join(attention_kinds(), ", ")));
  }
  return &*found;
}

std::string_view AttentionKind::name() const { return row_->name; }
std::string_view AttentionKind::source() const { return row_->source; }
const AttentionFields& AttentionKind::fields() const { return row_->fields; }

std::span<const Named<AttentionKind>> AttentionKind::named() {
  static const std::vector<Named<AttentionKind>> all = [] {
    std::vector<Named<AttentionKind>> kinds;
    for (const Row& row : rows()) kinds.push_back({row.name, AttentionKind(&row)});
    return kinds;
  }();
  return all;
}

AttentionFields fields_of(const AttentionConfig& config) {
  AttentionFields fields = config.kind.fields();
  fields.pairing = config.pairing.value_or(fields.pairing);
  fields.lambda = config.lambda.value_or(fields.lambda);
  fields.lambda_init = config.lambda_init.value_or(fields.lambda_init);
  fields.softmax_denominator = config.softmax_denominator.value_or(fields.softmax_denominator);
  fields.subln = config.subln.value_or(fields.subln);
  fields.gate = config.gate.value_or(fields.gate);
  fields.qk_norm = config.qk_norm;
  fields.logit_softcap = config.logit_softcap;
  fields.qk_clip = config.qk_clip;
  fields.sliding_window = config.sliding_window;
  const bool is_used = fields.maps() == 2 && fields.lambda == LambdaKind::exponential &&
                       fields.lambda_init == LambdaInit::constant;
  fields.lambda_init_value = is_used ? config.lambda_init_value : 0;
  return fields;
}

AttentionConfig plain_kind(AttentionKind kind, const AttentionConfig& config) {
  return {.kind = kind,
          .qk_norm = config.qk_norm,
          .logit_softcap = config.logit_softcap,
          .qk_clip = config.qk_clip,
          .sliding_window = config.sliding_window};
}

}  // namespace difftape
