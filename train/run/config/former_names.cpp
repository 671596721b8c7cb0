#include "train/run/config/former_names.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace difftape::run {

std::span<const FormerKey> former_keys() {
  static const std::vector<FormerKey> keys{
      {"model.match", {"model.match_params"}, {{"parameters", "true"}, {"none", "false"}}},
      {"model.attention.normaliser", {"model.attention.softmax_denominator"}},
      {"model.attention.window", {"model.attention.sliding_window"}},
      {"data.document_end", {"data.eos_token_id"}},
      {"data.keys", {"data.needles.cities", "data.mqar.keys", "data.noisy_recall.keys"}},
      {"data.values", {"data.mqar.values", "data.noisy_recall.values"}},
      {"data.facts", {"data.needles.facts"}},
      {"data.queries", {"data.needles.queries"}},
      {"data.digits", {"data.needles.digits"}},
      {"data.filler", {"data.needles.filler", "data.noisy_recall.filler"}},
      {"data.pairs", {"data.mqar.pairs"}},
      {"data.gap_power", {"data.mqar.gap_power"}},
      {"data.noise", {"data.noisy_recall.noise"}},
      {"data.symbols", {"data.backcopy.symbols"}},
      {"data.triggers", {"data.backcopy.triggers"}},
      {"train.recompute", {"train.activation_checkpointing"}},
  };
  return keys;
}

std::span<const FormerValue> former_values() {
  static const std::vector<FormerValue> values{
      {"model.attention.kind", "off_by_one", "softmax1"},
      {"model.attention.softmax_denominator", "off_by_one", "softmax1"},
      {"data.kind", "recall", "mqar"},
      {"log.spike_rule", "auto", "median"},
  };
  return values;
}

const FormerKey* find_former_key(const std::string& key) {
  const auto found = std::ranges::find(former_keys(), key, &FormerKey::key);
  return found == former_keys().end() ? nullptr : &*found;
}

std::string value_now(const std::string& key, const std::string& former) {
  const auto found = std::ranges::find_if(former_values(), [&](const FormerValue& value) {
    return value.key == key && value.value == former;
  });
  return found == former_values().end() ? "" : found->now;
}

std::string FormerKey::description() const {
  std::vector<std::string> words;
  for (const auto& [former, value] : values) words.push_back(value + " for " + former);
  return fmt::format("{}{}{}", fmt::join(now, " or "), words.empty() ? "" : ": ",
                     fmt::join(words, ", "));
}

std::optional<KeyAndValue> under_new_names(const std::string& key, const std::string& value,
                                           std::string_view data_kind) {
  KeyAndValue found{key, value};
  if (const FormerKey* former = find_former_key(key)) {
    const auto fits = [&](const std::string& now) {
      return former->now.size() == 1 || now.starts_with(fmt::format("data.{}.", data_kind));
    };
    const auto now = std::ranges::find_if(former->now, fits);
    if (now == former->now.end()) return std::nullopt;
    found.first = *now;
    const auto changed = std::ranges::find(former->values, value, &KeyAndValue::first);
    if (changed != former->values.end()) found.second = changed->second;
  }
  const std::string value_today = value_now(found.first, found.second);
  if (!value_today.empty()) found.second = value_today;
  return found;
}

}  // namespace difftape::run
