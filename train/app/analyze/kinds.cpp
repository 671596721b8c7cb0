#include "train/app/analyze/kinds.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "layers/language_model.h"
#include "layers/model_config.h"
#include "train/system/suggest.h"

namespace difftape::app {

std::string baseline_kind() { return std::string(AttentionKind().name()); }

std::string name_of_configured(const ModelConfig& model) {
  const AttentionKind kind = model.attention.kind;
  const bool is_plain = fields_of(model.attention) == fields_of(plain_kind(kind, model.attention));
  return std::string(is_plain ? kind.name() : kConfigured);
}

ModelConfig with_kind(const ModelConfig& model, const std::string& kind) {
  if (kind == kConfigured) return model;
  ModelConfig other = model;
  other.attention = plain_kind(kind, model.attention);
  return other;
}

void require_kinds(const std::vector<std::string>& kinds) {
  std::vector<std::string> known = attention_kinds();
  known.push_back(kConfigured);
  for (auto kind = kinds.begin(); kind != kinds.end(); ++kind) {
    if (std::find(known.begin(), known.end(), *kind) == known.end()) {
      throw UsageError(fmt::format("--kinds: '{}' is not one of {}{}", *kind,
                                   fmt::join(known, ", "), system::did_you_mean(*kind, known)));
    }
    if (std::find(kinds.begin(), kind, *kind) != kind) {
      throw UsageError(fmt::format("--kinds: {} is named twice", *kind));
    }
  }
}

}  // namespace difftape::app
