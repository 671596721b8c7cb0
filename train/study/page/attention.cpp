#include "train/study/page/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "core/error.h"
#include "train/run/records/attention_maps.h"
#include "train/study/page/frame.h"
#include "train/system/number.h"

namespace difftape::study::page {

namespace {

using Json = nlohmann::ordered_json;

/// Maximum number of heads on the page, about 35 kB each.
constexpr std::size_t kHeads = 16;
constexpr Index kLongest = 64;  ///< maximum number of tokens

/// The (T, T) maps of one head: one row per query, one column per key.
struct Head {
  Index tokens = 0;
  std::vector<std::span<const real>> maps;  ///< the map; or A1, A2 and the applied map
};

Head head_of(const Tensor& layer, Index head) {  // layer: (H, S, T, T)
  const Index maps = layer.shape()[1], tokens = layer.shape()[3];
  const auto size = static_cast<std::size_t>(tokens * tokens);
  Head result{tokens, {}};
  for (Index map = 0; map < maps; ++map) {
    const auto begin = static_cast<std::size_t>(head * maps + map) * size;
    result.maps.push_back(layer.values().subspan(begin, size));
  }
  return result;
}

double first_token(const Head& head) {
  double sum = 0;
  for (Index query = 0; query < head.tokens; ++query) {
    sum += head.maps.back()[static_cast<std::size_t>(query * head.tokens)];
  }
  return sum / static_cast<double>(head.tokens);
}

std::vector<Index> selected_heads(const Tensor& layer, std::size_t wanted) {
  Index largest = 0;
  for (Index head = 1; head < layer.shape()[0]; ++head) {
    if (first_token(head_of(layer, head)) > first_token(head_of(layer, largest))) largest = head;
  }
  std::vector<Index> heads = {largest};
  if (largest != 0 && wanted > 1) heads.push_back(0);
  return heads;
}

/// Returns keys up to the query, row by row, as 16-bit numbers: 65535 is an attention of 1; null if
/// it is not finite.
Json levels(const Head& head, std::span<const real> map) {
  Json levels = Json::array();
  for (Index query = 0; query < head.tokens; ++query) {
    for (Index key = 0; key <= query; ++key) {
      const double value = map[static_cast<std::size_t>(query * head.tokens + key)];
      levels.push_back(std::isfinite(value) ? Json(std::lround(65535 * std::clamp(value, 0.0, 1.0)))
                                            : Json());
    }
  }
  return levels;
}

Json head_json(const std::string& arm, const Row& run, const run::AttentionMaps& maps,
               Index index) {
  const Head head = head_of(maps.layers.back(), index);
  Json values = Json::array();
  for (const auto& map : head.maps) values.push_back(levels(head, map));
  return {{"arm", arm},
          {"run", run.name},
          {"layer", maps.layers.size() - 1},
          {"head", index},
          {"step", maps.step},
          {"first_token", system::number(first_token(head), "{:.3f}")},
          {"tokens", head.tokens},
          {"maps", std::move(values)}};
}

bool has_maps(const Tensor& layer) {
  const Shape& shape = layer.shape();
  return shape.rank() == 4 && shape[0] > 0 && (shape[1] == 1 || shape[1] == 3) && shape[2] > 0 &&
         shape[2] == shape[3] && shape[3] <= kLongest;
}

/// Returns the first replicate with maps of at least one layer.
const Row* run_with_maps(const Condition& condition, std::optional<run::AttentionMaps>& maps,
                         std::string& notes) {
  const auto say = [&](const std::string& text) { notes += notice(escape_html(text)); };
  for (const Row* run : condition.runs) {
    const std::filesystem::path path = run->dir / run::kMapsFile;
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    try {
      maps = run::read_attention_maps(path);
    } catch (const Error& error) {
      say(error.what());
    }
    if (!maps || maps->layers.empty()) continue;
    if (has_maps(maps->layers.back())) return run;
    say(fmt::format(
        "{}: a layer has the shape {}, but must be (heads, 1 or 3, T, T) with T at most {}",
        path.string(), maps->layers.back().shape().str(), kLongest));
  }
  return nullptr;
}

}  // namespace

Section attention_section(const Input& input) {
  Json heads = Json::array();
  const std::size_t wanted = 2 * input.study.arms.size() <= kHeads ? 2 : 1;
  std::string notes;
  std::size_t left_out = 0;
  for (const Arm& arm : input.study.arms) {
    const Condition* condition = shown_condition(input, arm);
    if (!condition) continue;
    if (heads.size() + wanted > kHeads) {
      ++left_out;
      continue;
    }
    std::optional<run::AttentionMaps> maps;
    const Row* run = run_with_maps(*condition, maps, notes);
    if (!run) continue;
    for (const Index head : selected_heads(maps->layers.back(), wanted))
      heads.push_back(head_json(arm.name, *run, *maps, head));
  }
  if (heads.empty()) return {notes, heads};
  if (left_out > 0)
    notes +=
        notice(fmt::format("The attention maps of {} more arms are omitted to keep this page "
                           "small.",
                           left_out));
  return {
      notes + kDrawn +
          note("Rows are queries, columns are keys, on a square-root scale. Shown are two heads "
               "of the last layer: the one with the most attention to the first token, and head "
               "0. The applied map weights the values; for two maps it is |A1 − λ A2|, with "
               "rows normalized to sum 1."),
      heads};
}

}  // namespace difftape::study::page
