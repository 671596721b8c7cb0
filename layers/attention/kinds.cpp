#include "layers/attention/kinds.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <deque>

#include "core/error.h"

namespace difftape {

namespace {

/// Returns the built-in kinds in alphabetical order.
std::vector<AttentionEntry> built_in() {
  return {
      // H/2 pairs of heads with values of twice the width; one lambda per layer; each head is
      // normalized and scaled by 1 - lambda_init.
      {.name = "diff_v1",
       .source = "Ye et al. 2024, Differential Transformer",
       .fields = {.mapping = MappingKind::paired,
                  .lambda = LambdaKind::exponential,
                  .subln = true}},
      // Twice the query heads over the baseline's keys and values; lambda is projected from the
      // input per token and head; no norm afterwards.
      {.name = "diff_v2",
       .source = "Ye et al. 2026, Differential Transformer V2",
       .fields = {.mapping = MappingKind::doubled, .lambda = LambdaKind::sigmoid}},
      // A sigmoid gate of the input multiplies the context.
      {.name = "gated",
       .source = "Qiu et al. 2025, Gated Attention",
       .fields = {.gate = Gate::elementwise}},
      // The denominator includes exp of a learned logit per head.
      {.name = "sink",
       .source = "OpenAI 2025, gpt-oss",
       .fields = {.softmax_denominator = SoftmaxDenominator::sink}},
      // The baseline: causal grouped-query attention.
      {.name = "softmax", .source = "Vaswani et al. 2017; Ainslie et al. 2023"},
      // The denominator includes 1, so that a head can attend to nothing.
      {.name = "softmax1",
       .source = "Miller 2023, Attention Is Off By One",
       .fields = {.softmax_denominator = SoftmaxDenominator::softmax1}},
      // The baseline with twice the query heads, and so twice the width before the output
      // projection: a control for V2 at the same query width.
      {.name = "softmax_2h",
       .source = "Ye et al. 2026, section \"parameters and FLOPs\"",
       .fields = {.query_multiple = 2}},
  };
}

bool is_word(std::string_view name) {
  const auto fits = [](char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  };
  return !name.empty() && std::ranges::all_of(name, fits);
}

}  // namespace

/// All kinds at stable addresses, in alphabetical order.
class AttentionRegistry {
 public:
  static AttentionRegistry& instance() {
    static AttentionRegistry registry;
    return registry;
  }

  std::span<const Named<AttentionKind>> named() const { return named_; }
  const AttentionEntry* find(std::string_view name) const {
    const auto found = std::ranges::find(named_, name, &Named<AttentionKind>::name);
    return found == named_.end() ? nullptr : &found->value.entry();
  }
  void add(AttentionEntry entry) {
    entries_.push_back(std::move(entry));
    AttentionEntry& added = entries_.back();
    added.fields.context = added.context ? std::string_view(added.name) : "";
    const auto after =
        std::ranges::upper_bound(named_, added.name, {}, &Named<AttentionKind>::name);
    named_.insert(after, {added.name, AttentionKind(&added)});
  }

 private:
  AttentionRegistry() {
    for (AttentionEntry& entry : built_in()) add(std::move(entry));
  }
  std::deque<AttentionEntry> entries_;
  std::vector<Named<AttentionKind>> named_;
};

void register_attention(AttentionEntry entry) {
  const auto refuse = [&](const char* why) {
    throw ConfigError(fmt::format("register_attention: the kind '{}' {}", entry.name, why));
  };
  if (!is_word(entry.name)) refuse("needs a name of lower-case letters, digits and '_'");
  if (entry.source.empty()) refuse("needs a source, such as the article that describes it");
  if (AttentionRegistry::instance().find(entry.name)) refuse("exists; choose another name");
  AttentionRegistry::instance().add(std::move(entry));
}

const AttentionEntry* AttentionKind::find(std::string_view name) {
  if (const AttentionEntry* entry = AttentionRegistry::instance().find(name)) return entry;
  throw ConfigError(fmt::format("model.attention.kind: '{}' is not one of {}", name,
                                fmt::join(attention_kinds(), ", ")));
}

std::span<const Named<AttentionKind>> AttentionKind::named() {
  return AttentionRegistry::instance().named();
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
  fields.logit_softcap = config.attn_logit_softcap;
  fields.qk_clip = config.qk_clip_threshold;
  fields.sliding_window = config.sliding_window;
  fields.block_size = config.block_size;
  fields.num_selected_blocks = config.num_selected_blocks;
  fields.block_selection = config.block_selection;
  const bool is_used = fields.maps() == 2 && fields.lambda == LambdaKind::exponential &&
                       fields.lambda_init == LambdaInit::constant;
  fields.lambda_init_value = is_used ? config.lambda_init_value : 0;
  return fields;
}

AttentionConfig plain_kind(AttentionKind kind, const AttentionConfig& config) {
  return {.kind = kind,
          .qk_norm = config.qk_norm,
          .attn_logit_softcap = config.attn_logit_softcap,
          .qk_clip_threshold = config.qk_clip_threshold,
          .sliding_window = config.sliding_window,
          .block_size = config.block_size,
          .num_selected_blocks = config.num_selected_blocks,
          .block_selection =
              kind.fields().maps() == 2 ? config.block_selection : BlockSelection::averaged};
}

}  // namespace difftape
